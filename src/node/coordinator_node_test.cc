// The coordinator's process: signals and its launcher. Its decisions are tested in coordinator/.
#include "node/coordinator_node.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <csignal>

#include "net/socket.h"

namespace drover {
namespace {

class CoordinatorNodeTest : public ::testing::Test {
 protected:
  IncarnationEnd run(pid_t launcher) {
    boost::asio::io_context loop(1);
    const auto listener = Listener::open(loop, "unix:drover-test-" + std::to_string(::getpid()));
    EXPECT_TRUE(listener.ok()) << listener.error().message;
    const auto listening = listener.value()->duplicate();
    EXPECT_TRUE(listening.ok());
    CoordinatorNodeSettings settings{.machine = {}, .listening_fd = listening.value()};
    settings.machine.asynchronous.emplace();
    settings.launcher = launcher;
    IncarnationEnd incarnation =
        run_coordinator(settings, nullptr, {}, {[] {}, [] { return done(); }});
    ::close(listening.value());
    return incarnation;
  }
};

// Between two incarnations of the coordinator the launcher may die unnoticed.
TEST_F(CoordinatorNodeTest, ACoordinatorWhoseLauncherHasDiedEnds) {
  const IncarnationEnd incarnation = run(::getpid());  // a process is not its own parent
  ASSERT_TRUE(incarnation.end);
  EXPECT_EQ(incarnation.end->outcome, RunOutcome::kFailed);
  EXPECT_EQ(incarnation.end->cause, EndCause::kLauncherLost);
}

TEST_F(CoordinatorNodeTest, AnInterruptionBetweenTwoIncarnationsReachesTheNext) {
  const InterruptionsHeld between_incarnations;
  std::raise(SIGTERM);
  const IncarnationEnd incarnation = run(-1);
  ASSERT_TRUE(incarnation.end);
  EXPECT_EQ(incarnation.end->outcome, RunOutcome::kInterrupted);
}

}  // namespace
}  // namespace drover

// What the coordinator's process does apart from what its machine decides.
#include "node/coordinator_node.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include "net/socket.h"

namespace drover {
namespace {

// A run that starts over has no coordinator for a moment, and the launcher may die in it.
TEST(CoordinatorNode, OneThatBeginsWithoutItsLauncherEnds) {
  boost::asio::io_context loop(1);
  auto listener = Listener::open(loop, "unix:drover-test-" + std::to_string(::getpid()));
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  const auto listening = listener.value()->duplicate();
  ASSERT_TRUE(listening.ok());
  CoordinatorNodeSettings settings{.machine = {}, .listening_fd = listening.value()};
  settings.machine.free_running.emplace();
  settings.launcher = ::getpid();  // a process is not its own parent
  const CoordinatorLife life =
      run_coordinator(settings, nullptr, {}, {[] {}, [] { return done(); }});
  ::close(listening.value());
  ASSERT_TRUE(life.end);
  EXPECT_EQ(life.end->outcome, RunOutcome::kFailed);
  EXPECT_NE(life.end->reason.find("lost the launcher"), std::string::npos) << life.end->reason;
}

}  // namespace
}  // namespace drover

#include "node/exits_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "net/test_loop.h"
#include "node/pipe.h"

namespace drover {
namespace {

using ExitsReaderTest = LoopTest;

TEST_F(ExitsReaderTest, ReportsEveryExitInOrder) {
  const Pipe pipe = make_pipe(O_CLOEXEC | O_NONBLOCK).value();
  std::vector<ExitReport> exits;
  ExitsReader reader(loop_, pipe.from, [&](const ExitReport& report) { exits.push_back(report); });
  ::close(pipe.from);
  reader.start();
  const std::vector<ExitReport> sent = {
      {.peer = {Role::kWorker, 3}, .exit = {.by_signal = true, .number = 9}, .restarted = true},
      {.peer = {Role::kShard, 0}, .exit = {.by_signal = false, .number = 1}}};
  for (const ExitReport& each : sent) {
    const ExitReportBytes bytes = bytes_of(each);
    ASSERT_EQ(::write(pipe.to, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  ASSERT_TRUE(run_until([&] { return exits.size() == 2; }));
  EXPECT_EQ(exits, sent);
  ::close(pipe.to);
}

TEST_F(ExitsReaderTest, ReadsNothingWithoutALauncher) {
  ExitsReader reader(loop_, -1, [](const ExitReport&) { ADD_FAILURE(); });
  reader.start();
  loop_.poll();
}

}  // namespace
}  // namespace drover

#include "node/exits_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "net/test_loop.h"
#include "node/pipe.h"

namespace drover {
namespace {

using ExitsReaderTest = LoopTest;

TEST_F(ExitsReaderTest, ReportsEveryExitInOrder) {
  const Pipe pipe = make_pipe(O_CLOEXEC | O_NONBLOCK).value();
  std::vector<std::pair<std::string, std::string>> exits;
  ExitsReader reader(loop_, pipe.from, [&](const std::string& peer, const std::string& how) {
    exits.emplace_back(peer, how);
  });
  ::close(pipe.from);
  reader.start();
  const std::string lines =
      "worker 3: killed by signal 9 (Killed)\nshard 0: exited with status 1\n";
  ASSERT_EQ(::write(pipe.to, lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
  ASSERT_TRUE(run_until([&] { return exits.size() == 2; }));
  EXPECT_EQ(exits[0],
            std::pair(std::string("worker 3"), std::string("killed by signal 9 (Killed)")));
  EXPECT_EQ(exits[1].first, "shard 0");
  ::close(pipe.to);
}

TEST_F(ExitsReaderTest, ReadsNothingWhereThereIsNoLauncher) {
  ExitsReader reader(loop_, -1, [](const std::string&, const std::string&) { ADD_FAILURE(); });
  reader.start();
  loop_.poll();
}

}  // namespace
}  // namespace drover

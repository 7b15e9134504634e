// A message reaches the process that it was sent to, over the connection that it was sent on, or it
// is lost.
#include "sim/processes.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

constexpr Party kServer{Role::kShard, 0};
constexpr Party kWorker{Role::kWorker, 3};

class ProcessesTest : public ::testing::Test {
 protected:
  ProcessesTest() {
    processes_.start(kServer);
    processes_.start(kWorker);
    processes_.connect(kServer, kWorker);
  }
  bool delivers(Party from, uint64_t number, Party to) const {
    return processes_.delivers(from, number, to, processes_.reached_from(from, to));
  }

  Processes processes_;
};

TEST_F(ProcessesTest, ConnectedProcessesReachEachOther) {
  EXPECT_TRUE(delivers(kWorker, 1, kServer));
  EXPECT_TRUE(delivers(kServer, 1, kWorker));
  EXPECT_EQ(processes_.clients_of(kServer), std::vector<Party>{kWorker});
  EXPECT_EQ(processes_.servers_of(kWorker), std::vector<Party>{kServer});
}

TEST_F(ProcessesTest, MessagesOfADeadProcessArriveUntilItsConnectionEnds) {
  processes_.end(kWorker, false);
  EXPECT_TRUE(processes_.delivers(kWorker, 1, kServer, 1));
  processes_.disconnect(kServer, kWorker);
  EXPECT_FALSE(processes_.delivers(kWorker, 1, kServer, 1));
}

TEST_F(ProcessesTest, MessagesAreLostWithAHost) {
  processes_.end(kWorker, true);
  EXPECT_FALSE(processes_.delivers(kWorker, 1, kServer, 1));
}

TEST_F(ProcessesTest, OldMessagesDoNotReachTheNextProcessOfThatName) {
  const uint64_t reached = processes_.reached_from(kServer, kWorker);
  processes_.end(kWorker, false);
  EXPECT_EQ(processes_.start(kWorker), 2u);
  EXPECT_FALSE(processes_.delivers(kServer, 1, kWorker, reached));
  EXPECT_FALSE(processes_.connected(kServer, 1, kWorker, 2));
  // The new process does not own an old connection whose end the server has not noticed.
  EXPECT_EQ(processes_.reached_from(kWorker, kServer), 0u);
}

TEST_F(ProcessesTest, AProcessTakesPartInOneIncarnationAtATime) {
  EXPECT_FALSE(processes_.takes_part(kWorker, 1, 1));
  processes_.join(kWorker, 1);
  EXPECT_TRUE(processes_.takes_part(kWorker, 1, 1));
  EXPECT_FALSE(processes_.takes_part(kWorker, 1, 2));
  processes_.end(kWorker, false);
  processes_.start(kWorker);
  EXPECT_FALSE(processes_.takes_part(kWorker, 2, 1));
  EXPECT_TRUE(processes_.takes_part(kWorker, 1, 1))
      << "its messages still belong to the old incarnation";
}

}  // namespace
}  // namespace drover

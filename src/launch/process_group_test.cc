#include "launch/process_group.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <map>
#include <new>
#include <optional>
#include <string>

namespace drover {
namespace {

constexpr Peer kHead{Role::kShard, 0};
constexpr Peer kOther{Role::kShard, 1};

// Memory that the processes share.
struct Board {
  std::atomic<pid_t> head;
  std::atomic<int> starts;  // of kOther
};

// Runs a head that ends at once, and another process that is killed when the head has been reaped.
// Returns how often the other process was started.
int starts_of_the_other(std::optional<ProcessGroup::Restart> restart) {
  void* const memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  Board& board = *new (memory) Board{};
  ProcessGroup processes;
  EXPECT_TRUE(processes
                  .add(kHead, SIGKILL,
                       [&board] {
                         board.head = ::getpid();
                         return 7;
                       })
                  .ok());
  EXPECT_TRUE(processes
                  .add(kOther, SIGKILL,
                       [&board] {
                         if (++board.starts > 1) return 0;
                         while (board.head == 0 || ::kill(board.head, 0) == 0) ::sched_yield();
                         ::kill(::getpid(), SIGKILL);
                         return 1;
                       })
                  .ok());
  if (restart) processes.restart_killed(*restart);
  const int status = processes.supervise(kHead, -1, std::nullopt);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  const int starts = board.starts;
  ::munmap(memory, sizeof(Board));
  return starts;
}

TEST(ProcessGroup, NamesTheChildrenThatFailed) {
  ProcessGroup processes;
  const auto ends = [&](uint32_t index, int status) {
    return processes.add({Role::kWorker, index}, SIGKILL, [status] {
      if (status < 0) ::kill(::getpid(), -status);
      return status;
    });
  };
  ASSERT_TRUE(ends(0, 0).ok());
  ASSERT_TRUE(ends(1, 3).ok());
  ASSERT_TRUE(ends(2, -SIGKILL).ok());
  processes.supervise({Role::kWorker, 0}, -1, std::nullopt);
  std::map<uint32_t, std::string> failed;
  for (const ProcessGroup::Failure& failure : processes.failures())
    failed[failure.peer.index] = describe_exit(failure.status);
  EXPECT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed[1], "exited with status 3");
  EXPECT_EQ(failed[2], "killed by signal 9 (Killed)");
}

TEST(ProcessGroup, KilledProcessesAreRestartedIfRequested) {
  EXPECT_EQ(starts_of_the_other(std::nullopt), 1);
  EXPECT_EQ(starts_of_the_other(ProcessGroup::Restart::kWhileHeadRuns), 1) << "the run is over";
  EXPECT_EQ(starts_of_the_other(ProcessGroup::Restart::kAlways), 2)
      << "the run has no head in this group";
}

}  // namespace
}  // namespace drover

#include "launch/process_group.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <new>
#include <optional>

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

TEST(ProcessGroup, KilledProcessesAreRestartedIfRequested) {
  EXPECT_EQ(starts_of_the_other(std::nullopt), 1);
  EXPECT_EQ(starts_of_the_other(ProcessGroup::Restart::kWhileHeadRuns), 1) << "the run is over";
  EXPECT_EQ(starts_of_the_other(ProcessGroup::Restart::kAlways), 2)
      << "the run has no head in this group";
}

}  // namespace
}  // namespace drover

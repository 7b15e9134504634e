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

// What the processes share.
struct Board {
  std::atomic<pid_t> head;
  std::atomic<int> lives;  // of the other
};

// A head that ends at once, and another that is killed as soon as nobody knows the head any more.
// Returns how often the other lived.
int lives_of_the_other(std::optional<ProcessGroup::Restart> restart) {
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
                         if (++board.lives > 1) return 0;
                         while (board.head == 0 || ::kill(board.head, 0) == 0) ::sched_yield();
                         ::kill(::getpid(), SIGKILL);
                         return 1;
                       })
                  .ok());
  if (restart) processes.restart_the_killed(*restart);
  const int status = processes.supervise(kHead, -1, std::nullopt);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  const int lives = board.lives;
  ::munmap(memory, sizeof(Board));
  return lives;
}

TEST(ProcessGroup, WhoIsKilledIsStartedAgainIfThatWasAsked) {
  EXPECT_EQ(lives_of_the_other(std::nullopt), 1);
  EXPECT_EQ(lives_of_the_other(ProcessGroup::Restart::kWhileHeadLives), 1) << "the run is over";
  EXPECT_EQ(lives_of_the_other(ProcessGroup::Restart::kAlways), 2)
      << "nobody here is the run's head";
}

}  // namespace
}  // namespace drover

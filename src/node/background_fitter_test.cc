// The thread is real. The fit is a fake that the test steps through.
#include "node/background_fitter.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <csignal>
#include <latch>

#include "node/clock.h"

namespace drover {
namespace {

using std::chrono::milliseconds;

FitRequest request_with(uint64_t seed) { return {.settings = {.seed = seed}}; }

FitOutcome outcome_of(const FitRequest& request, uint64_t iterations) {
  FitOutcome outcome;
  outcome.weights.note = {.seed = request.settings.seed, .steps = iterations};
  return outcome;
}

// Polls until there is an answer, or a deadline has passed.
std::optional<Result<FitOutcome>> answer_of(BackgroundFitter& fitter) {
  const TimePoint deadline = clock_now() + std::chrono::seconds(60);
  while (clock_now() < deadline) {
    if (auto answer = fitter.poll(0)) return answer;
    std::this_thread::yield();
  }
  return std::nullopt;
}

TEST(PauseForShare, KeepsToItsShareOfTheCore) {
  EXPECT_EQ(pause_for_share(milliseconds(10), milliseconds(10), 0.25), milliseconds(30));
  EXPECT_EQ(pause_for_share(milliseconds(10), milliseconds(25), 0.25), milliseconds(15))
      << "the pause was long enough already";
  EXPECT_EQ(pause_for_share(milliseconds(10), milliseconds(90), 0.25), milliseconds(0));
  EXPECT_EQ(pause_for_share(milliseconds(10), milliseconds(10), 1.0), milliseconds(0));
}

TEST(BackgroundFitter, AnswersOnceAndDoesNotBlockTheCaller) {
  std::latch begun(1);
  std::latch may_end(1);
  BackgroundFitter fitter([&](const FitRequest& request, const FitListener& listener) {
    begun.count_down();
    may_end.wait();
    EXPECT_TRUE(listener(1, nullptr));
    return Result(outcome_of(request, 1));
  });
  EXPECT_FALSE(fitter.busy());
  EXPECT_FALSE(fitter.poll(0));
  fitter.begin(1, request_with(7));
  EXPECT_TRUE(fitter.busy());
  begun.wait();
  EXPECT_FALSE(fitter.poll(2)) << "the fit is still under way";
  may_end.count_down();
  const auto answer = answer_of(fitter);
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ(answer->value().weights.note.seed, 7U);
  EXPECT_FALSE(fitter.busy());
  EXPECT_FALSE(fitter.poll(3)) << "once";
}

TEST(BackgroundFitter, FitsRepeatedly) {
  BackgroundFitter fitter(
      [](const FitRequest& request, const FitListener& listener) -> Result<FitOutcome> {
        if (request.settings.seed == 2) return system_error("no libtorch");
        uint64_t iterations = 0;
        while (iterations < 100 && listener(1, nullptr)) ++iterations;
        return outcome_of(request, iterations);
      },
      1.0);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    fitter.begin(seed, request_with(seed));
    const auto answer = answer_of(fitter);
    ASSERT_TRUE(answer) << seed;
    ASSERT_EQ(answer->ok(), seed != 2) << "a failure is an answer, and the next fit may succeed";
    if (seed != 2) {
      EXPECT_EQ(answer->value().weights.note.seed, seed);
      EXPECT_EQ(answer->value().weights.note.steps, 100U);
    }
  }
}

TEST(BackgroundFitter, RunsOnItsOwnThreadWithTheLowestPriority) {
  std::thread::id where;
  int policy = -1;
  int niceness = 0;
  bool blocks_signals = false;
  BackgroundFitter fitter([&](const FitRequest& request, const FitListener&) {
    where = std::this_thread::get_id();
    policy = ::sched_getscheduler(0);
    niceness = ::getpriority(PRIO_PROCESS, 0);
    sigset_t blocked;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    blocks_signals = sigismember(&blocked, SIGTERM) == 1;
    return Result(outcome_of(request, 0));
  });
  fitter.begin(1, request_with(1));
  ASSERT_TRUE(answer_of(fitter));
  EXPECT_NE(where, std::this_thread::get_id());
  EXPECT_TRUE(policy == SCHED_IDLE || niceness == 19);
  EXPECT_TRUE(blocks_signals) << "signals go to other threads";
  EXPECT_NE(::sched_getscheduler(0), SCHED_IDLE) << "the caller's thread is unchanged";
  sigset_t blocked;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 0);
}

TEST(BackgroundFitter, AFitUnderWayIsStopped) {
  std::latch begun(1);
  bool stopped = false;
  auto fitter = std::make_unique<BackgroundFitter>(
      [&](const FitRequest& request, const FitListener& listener) {
        begun.count_down();
        for (uint32_t i = 1; listener(i, nullptr); ++i) {
        }
        stopped = true;
        return Result(outcome_of(request, 0));
      },
      1.0);
  fitter->begin(1, request_with(1));
  begun.wait();
  fitter.reset();  // would hang if the fit were not stopped
  EXPECT_TRUE(stopped);
}

TEST(BackgroundFitter, APauseEndsWhenTheFitterDoes) {
  // A share so small that the pause after the first iteration would take a day.
  std::latch begun(1);
  auto fitter = std::make_unique<BackgroundFitter>(
      [&](const FitRequest& request, const FitListener& listener) {
        volatile double busy = 1.0;
        for (int i = 0; i < 1'000'000; ++i) busy = busy * 1.000001;
        begun.count_down();
        while (listener(1, nullptr)) {
        }
        return Result(outcome_of(request, 0));
      },
      1e-8);
  fitter->begin(1, request_with(1));
  begun.wait();
  fitter.reset();
}

TEST(BackgroundFitter, HasNoThreadBeforeTheFirstFit) {
  const BackgroundFitter fitter(
      [](const FitRequest& request, const FitListener&) { return Result(outcome_of(request, 0)); });
  EXPECT_FALSE(fitter.busy());
}

}  // namespace
}  // namespace drover

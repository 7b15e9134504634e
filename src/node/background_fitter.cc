#include "node/background_fitter.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <system_error>

#include "core/check.h"
#include "node/background_thread.h"
#include "node/clock.h"

namespace drover {
namespace {

// On Linux both calls affect the calling thread alone.
void use_lowest_priority() {
  const sched_param none{};
  if (::sched_setscheduler(0, SCHED_IDLE, &none) == 0) return;
  [[maybe_unused]] const int refused =
      ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19);
}

Duration computed_by_this_thread() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace

Duration pause_for_share(Duration computed, Duration passed, double share) {
  const Duration due = from_seconds(seconds(computed) / share);
  return std::max(Duration::zero(), due - passed);
}

BackgroundFitter::BackgroundFitter(FitFunction fit, double share)
    : fit_(std::move(fit)), share_(share) {
  DROVER_CHECK(share > 0.0 && share <= 1.0);
}

BackgroundFitter::~BackgroundFitter() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void BackgroundFitter::begin(Step, FitRequest request) {
  DROVER_CHECK(!busy_);
  busy_ = true;
  if (!thread_.joinable()) {
    try {
      const SignalsBlocked blocked;  // a thread inherits the mask
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error& trouble) {
      outcome_ =
          system_error(std::string("cannot fit a model: cannot start a thread: ") + trouble.what());
      answered_ = true;
      return;
    }
  }
  {
    const MutexLock lock(mutex_);
    request_ = std::move(request);
  }
  changed_.notify_one();
}

std::optional<Result<FitOutcome>> BackgroundFitter::poll(Step) {
  if (!busy_ || !answered_) return std::nullopt;
  answered_ = false;
  busy_ = false;
  return std::exchange(outcome_, std::nullopt);
}

bool BackgroundFitter::pause(Duration pause) {
  const TimePoint until = clock_now() + pause;
  const MutexLock lock(mutex_);
  while (!stop_ && clock_now() < until) changed_.wait_for(mutex_, until - clock_now());
  return !stop_;
}

void BackgroundFitter::work() {
  ::pthread_setname_np(::pthread_self(), "fit");
  use_lowest_priority();
  while (true) {
    std::optional<FitRequest> request;
    {
      const MutexLock lock(mutex_);
      while (!stop_ && !request_) changed_.wait(mutex_);
      if (stop_) return;
      request = std::exchange(request_, std::nullopt);
    }
    TimePoint began = clock_now();
    Duration computed = computed_by_this_thread();
    outcome_ = fit_(*request, [&](uint32_t, const FitPoint*) {
      const bool keep_fitting =
          pause(pause_for_share(computed_by_this_thread() - computed, clock_now() - began, share_));
      began = clock_now();
      computed = computed_by_this_thread();
      return keep_fitting;
    });
    answered_ = true;
  }
}

}  // namespace drover

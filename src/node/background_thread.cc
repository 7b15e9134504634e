#include "node/background_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <system_error>

namespace drover {

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}
SignalsBlocked::~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

BackgroundThread::~BackgroundThread() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

bool BackgroundThread::start(std::function<void()> body) {
  if (thread_.joinable()) thread_.join();  // its task is done
  try {
    const SignalsBlocked blocked;
    thread_ = std::thread([body = std::move(body)] {
      ::pthread_setname_np(::pthread_self(), "aside");
      // On Linux this affects the calling thread alone. Not SCHED_IDLE: the thread must make
      // progress on a busy machine, since a checkpoint that is being written holds memory.
      [[maybe_unused]] const int refused =
          ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19);
      body();
    });
  } catch (const std::system_error&) {
    return false;
  }
  busy_ = true;
  return true;
}

}  // namespace drover

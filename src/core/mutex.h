// Mutex, MutexLock and ConditionVariable with annotations for Clang's thread-safety analysis, which
// std::mutex does not have. `make lint` fails if a member that is marked DROVER_GUARDED_BY is used
// without holding its mutex.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define DROVER_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define DROVER_THREAD_ATTRIBUTE(x)
#endif
// For members: they are read and written only while the mutex is held.
#define DROVER_GUARDED_BY(mutex) DROVER_THREAD_ATTRIBUTE(guarded_by(mutex))
// For functions: the caller holds the mutex.
#define DROVER_REQUIRES(mutex) DROVER_THREAD_ATTRIBUTE(requires_capability(mutex))
// For functions: the caller does not hold the mutex, since the function locks it.
#define DROVER_EXCLUDES(mutex) DROVER_THREAD_ATTRIBUTE(locks_excluded(mutex))

namespace drover {

class DROVER_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() DROVER_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() DROVER_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  friend class ConditionVariable;
  std::mutex mutex_;
};

// Holds a mutex during its lifetime.
class DROVER_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) DROVER_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() DROVER_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits have no predicate, since the analysis does not know which mutexes a lambda holds. Callers
// wait in a loop that tests the condition, since a wait may end early.
class ConditionVariable {
 public:
  void wait(Mutex& mutex) DROVER_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  // Returns false if `length` has passed.
  bool wait_for(Mutex& mutex, std::chrono::nanoseconds length) DROVER_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const std::cv_status status = changed_.wait_for(lock, length);
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace drover

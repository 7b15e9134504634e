// A mutex that Clang's thread-safety analysis understands, as the standard library's is not: reading
// a member marked DROVER_GUARDED_BY without holding its mutex is an error of `make lint`.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define DROVER_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define DROVER_THREAD_ATTRIBUTE(x)
#endif
// Of members: they are read and written only while the mutex is held.
#define DROVER_GUARDED_BY(mutex) DROVER_THREAD_ATTRIBUTE(guarded_by(mutex))
// Of functions: the caller holds the mutex.
#define DROVER_REQUIRES(mutex) DROVER_THREAD_ATTRIBUTE(requires_capability(mutex))
// Of functions: the caller does not hold the mutex, which they take.
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

// Holds a mutex from its construction to its end.
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

// Waits take no predicate: the analysis does not see which mutex a lambda holds. Wait in a loop that
// tests the condition, since a wait may end early.
class ConditionVariable {
 public:
  void wait(Mutex& mutex) DROVER_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  // False: `length` has passed.
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

// Quarantine: keeps out, for a growing time, workers that come and go again and again.
//
// Everybody may be lost a few times. A worker that is lost soon after it has come, over and over (a
// host whose link flaps, a process that crashes as soon as it starts), costs every step that it
// spoils; so it waits before it is let in again, twice as long each time. One that has stayed for a
// while starts with a clean record.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>

#include "core/ids.h"
#include "core/time.h"

namespace drover {

class Quarantine {
 public:
  static constexpr uint32_t kForgiven = 3;  // losses in a row
  static constexpr Duration kFirst = std::chrono::seconds(5);
  static constexpr Duration kLongest = std::chrono::minutes(5);
  static constexpr Duration kSettled = std::chrono::minutes(2);  // a stay that clears the record

  void on_joined(WorkerId worker, TimePoint now) { records_[worker].joined = now; }

  // Returns how long it is kept out. REQUIRES: it had joined.
  Duration on_lost(WorkerId worker, TimePoint now) {
    Record& record = records_[worker];
    record.losses = now - record.joined >= kSettled ? 1 : record.losses + 1;
    if (record.losses <= kForgiven) return Duration::zero();
    const uint32_t doublings = std::min(record.losses - kForgiven - 1, 30u);
    const Duration wait = std::min(kLongest, kFirst * (int64_t{1} << doublings));
    record.until = now + wait;
    return wait;
  }

  // How much longer it has to wait.
  Duration wait(WorkerId worker, TimePoint now) const {
    const auto found = records_.find(worker);
    return found == records_.end() ? Duration::zero()
                                   : std::max(Duration::zero(), found->second.until - now);
  }
  uint32_t losses(WorkerId worker) const {
    const auto found = records_.find(worker);
    return found == records_.end() ? 0 : found->second.losses;
  }

 private:
  struct Record {
    TimePoint joined{};
    TimePoint until{};
    uint32_t losses = 0;  // in a row, each soon after it had come
  };
  std::map<WorkerId, Record> records_;
};

}  // namespace drover

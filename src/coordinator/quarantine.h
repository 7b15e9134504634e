// Quarantine: exponential backoff for workers that are lost repeatedly soon after they join.
//
// The first few losses have no effect. A worker that is lost again and again soon after joining
// (its host's link flaps, or the process crashes at start) disturbs every step that it takes part
// in. Each further loss doubles the time before it is admitted again. A worker that stays for
// kSettled starts with a clean record.
//
// Each worker of the start has its own record. A worker that joins later may get a different index
// each time, so there is one record for each host. If a host's link goes down, its workers are lost
// together and this counts as one loss.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include "core/ids.h"
#include "core/time.h"

namespace drover {

class Quarantine {
 public:
  static constexpr uint32_t kForgiven = 3;  // losses in a row without backoff
  static constexpr Duration kFirst = std::chrono::seconds(5);
  static constexpr Duration kLongest = std::chrono::minutes(5);
  static constexpr Duration kSettled = std::chrono::minutes(2);  // a stay that clears the record

  // `account`: the name of the record, here and below. A worker that leaves regularly is not
  // reported here.
  void on_joined(WorkerId worker, const std::string& account, TimePoint now) {
    here_[worker] = {account, now};
  }

  struct Backoff {
    uint32_t losses = 0;  // in a row, each soon after joining
    Duration wait{};      // until the worker is admitted again; zero: it may join now
  };
  // REQUIRES: the worker had joined.
  Backoff on_lost(WorkerId worker, TimePoint now) {
    const Stay stay = here_.at(worker);
    here_.erase(worker);
    std::erase_if(records_, [&](const auto& each) { return is_old(each.second, now); });
    const auto [found, is_new] = records_.try_emplace(stay.account);
    Record& record = found->second;
    // A worker that joined before the last loss was lost together with others: counted already.
    if (is_new || stay.since >= record.lost) {
      record.losses = now - stay.since >= kSettled ? 1 : record.losses + 1;
      record.lost = now;
      if (record.losses > kForgiven) {
        const uint32_t doublings = std::min(record.losses - kForgiven - 1, 30u);
        record.until = now + std::min(kLongest, kFirst * (int64_t{1} << doublings));
      }
    }
    return backoff(stay.account, now);
  }

  Backoff backoff(const std::string& account, TimePoint now) const {
    const auto found = records_.find(account);
    if (found == records_.end()) return {};
    return {found->second.losses, std::max(Duration::zero(), found->second.until - now)};
  }

 private:
  struct Stay {
    std::string account;
    TimePoint since{};
  };
  struct Record {
    TimePoint lost{};  // the last loss that counted
    TimePoint until{};
    uint32_t losses = 0;
  };
  static bool is_old(const Record& record, TimePoint now) {
    return now - record.lost > kLongest + kSettled;
  }

  std::map<WorkerId, Stay> here_;
  std::map<std::string, Record> records_;
};

}  // namespace drover

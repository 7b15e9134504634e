// Quarantine: keeps out, for a growing time, who comes and goes again and again.
//
// Everybody may be lost a few times. Who is lost soon after it has come, over and over (a host
// whose link flaps, a process that crashes as soon as it starts), costs every step that it spoils;
// so it waits before it is let in again, twice as long each time. One that has stayed for a while
// starts with a clean record.
//
// A worker of the run has a record of its own. Those who join later take any place that is free:
// what they have in common from one time to the next is their host, so that has the record, and a
// link that goes down with several of them on it counts once.
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
  static constexpr uint32_t kForgiven = 3;  // losses in a row
  static constexpr Duration kFirst = std::chrono::seconds(5);
  static constexpr Duration kLongest = std::chrono::minutes(5);
  static constexpr Duration kSettled = std::chrono::minutes(2);  // a stay that clears the record

  // `who`: whose record it is, here and below. One that leaves as it should needs no word.
  void on_joined(WorkerId worker, const std::string& who, TimePoint now) {
    here_[worker] = {who, now};
  }

  struct KeptOut {
    uint32_t losses = 0;  // in a row, each soon after it had come
    Duration wait{};      // before it is let in again; zero: it may come at once
  };
  // REQUIRES: it had joined.
  KeptOut on_lost(WorkerId worker, TimePoint now) {
    const Stay stay = here_.at(worker);
    here_.erase(worker);
    std::erase_if(records_, [&](const auto& each) { return is_old(each.second, now); });
    const auto [found, is_new] = records_.try_emplace(stay.who);
    Record& record = found->second;
    // Else it was lost together with others, for which it has paid.
    if (is_new || stay.since >= record.lost) {
      record.losses = now - stay.since >= kSettled ? 1 : record.losses + 1;
      record.lost = now;
      if (record.losses > kForgiven) {
        const uint32_t doublings = std::min(record.losses - kForgiven - 1, 30u);
        record.until = now + std::min(kLongest, kFirst * (int64_t{1} << doublings));
      }
    }
    return kept_out(stay.who, now);
  }

  KeptOut kept_out(const std::string& who, TimePoint now) const {
    const auto found = records_.find(who);
    if (found == records_.end()) return {};
    return {found->second.losses, std::max(Duration::zero(), found->second.until - now)};
  }

 private:
  struct Stay {
    std::string who;
    TimePoint since{};
  };
  struct Record {
    TimePoint lost{};  // the last time that counted
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

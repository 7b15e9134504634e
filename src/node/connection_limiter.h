// ConnectionLimiter: which addresses have failed so often to introduce somebody that nobody from
// there is listened to for a while.
//
// Every address has a bucket of failures that fills up again with time. A failure that finds it
// empty shuts the address out, and each further one twice as long, up to a limit; a full bucket
// forgives everything. Without a clock: callers say what time it is.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "core/time.h"

namespace drover {

class ConnectionLimiter {
 public:
  struct Limits {
    double failures;    // at once
    double per_second;  // that are forgiven
    Duration shut_first;
    Duration shut_most;
  };
  // Of strangers elsewhere.
  static constexpr Limits kFar{16, 0.1, std::chrono::seconds(1), std::chrono::minutes(5)};
  // Of this machine, or of one that members come from: there a stranger must not shut them out, and
  // hundreds that are started with a wrong token may hide one with the right one.
  static constexpr Limits kNear{2000, 200, std::chrono::milliseconds(50), std::chrono::seconds(1)};
  // Addresses that are kept in mind; the least guilty are forgotten first.
  static constexpr size_t kAddressesMax = 4096;
  static constexpr Duration kTellEvery = std::chrono::hours(1);

  bool is_shut_out(const std::string& address, TimePoint now) const;
  // Somebody from there has failed. Returns whether that is worth telling: not more than once in
  // kTellEvery.
  bool on_failure(const std::string& address, bool near, TimePoint now);
  // A member came from there.
  void on_member(const std::string& address) { members_.insert(address); }

  size_t addresses() const { return accounts_.size(); }

 private:
  struct Account {
    double left = 0.0;  // failures, at `seen`
    TimePoint seen{};
    Duration shut_for{};  // the last time
    TimePoint shut_until{};
    TimePoint told{};
  };

  void make_room(TimePoint now);

  std::map<std::string, Account> accounts_;
  std::set<std::string> members_;
};

}  // namespace drover

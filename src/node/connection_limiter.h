// ConnectionLimiter: blocks addresses whose connections repeatedly fail to authenticate.
//
// Every address has a bucket of failures that refills with time. A failure with an empty bucket
// blocks the address; each further one blocks it for twice as long, up to a limit. A full bucket
// resets the block time. Without a clock: callers pass the time.
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
    double failures;    // size of the bucket
    double per_second;  // refill rate
    Duration first_block;
    Duration longest_block;
  };
  // Addresses of other hosts.
  static constexpr Limits kRemote{16, 0.1, std::chrono::seconds(1), std::chrono::minutes(5)};
  // This host, and hosts that members have connected from: an unauthenticated peer there must not
  // get members blocked, and one process with the right token may start among hundreds with a wrong
  // one.
  static constexpr Limits kTrusted{2000, 200, std::chrono::milliseconds(50),
                                   std::chrono::seconds(1)};
  // Addresses in memory. The one with the shortest remaining block is forgotten first.
  static constexpr size_t kAddressesMax = 4096;
  static constexpr Duration kReportInterval = std::chrono::hours(1);

  bool is_blocked(const std::string& address, TimePoint now) const;
  // A connection from `address` failed to authenticate. Returns whether to report it: once in
  // kReportInterval. `near`: the address is on this host.
  bool on_failure(const std::string& address, bool near, TimePoint now);
  // A member connected from `address`.
  void on_member(const std::string& address) { members_.insert(address); }

  size_t addresses() const { return accounts_.size(); }

 private:
  struct Account {
    double left = 0.0;  // failures in the bucket, at `updated`
    TimePoint updated{};
    Duration block{};  // length of the last block
    TimePoint blocked_until{};
    TimePoint reported{};
  };

  void evict_one_if_full(TimePoint now);

  std::map<std::string, Account> accounts_;
  std::set<std::string> members_;
};

}  // namespace drover

// WorkerRoster: which workers have joined, which are ready, and which are members (take part in
// steps). It also gives indices to workers that have none.
//
// Indices below `at_start` belong to workers of the start. These are members from the beginning.
// Their indices stay reserved if they are lost, since they may return. A worker that joins later
// becomes a member when it is ready and the next step opens.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/quarantine.h"
#include "core/ids.h"
#include "core/membership.h"
#include "core/result.h"
#include "core/time.h"
#include "wire/control.h"

namespace drover {

class WorkerRoster {
 public:
  // How long an offered index stays reserved. The process may have to load data before it joins.
  static constexpr Duration kPlaceKept = std::chrono::minutes(2);

  // REQUIRES: at_start <= workers.
  WorkerRoster(uint32_t workers, uint32_t at_start);

  // Whether the worker may join now. An error is the reason to refuse it.
  Status check(const Hello& hello, TimePoint now) const;
  // REQUIRES: check() is ok.
  void join(const Hello& hello, TimePoint now);
  // Reserves an index for a process of this host. An error is the reason why there is none.
  Result<WorkerId> offer_index(const std::string& host, TimePoint now);

  // Ignored for a worker that has not joined.
  void on_ready(WorkerId worker);
  // Makes all ready workers members. Returns the new members, ascending.
  std::vector<WorkerId> add_ready();

  // A worker's connection ended, or its process ended before it joined. The worker is not joined or
  // ready any more. It stays a member until remove_member() is called.
  struct Departure {
    bool had_joined = false;
    Quarantine::Backoff backoff = {};
  };
  Departure on_lost(WorkerId worker, TimePoint now);
  // A worker has finished its work and left. Like on_lost(), but does not count for the backoff.
  void on_left(WorkerId worker);
  // Returns whether the worker was a member until now.
  bool remove_member(WorkerId worker) { return members_.remove(worker); }

  bool is_of_start(WorkerId worker) const { return worker < at_start_; }
  bool has_joined(WorkerId worker) const { return joined_.contains(worker); }
  bool is_ready(WorkerId worker) const { return ready_.contains(worker); }
  const std::set<WorkerId>& joined() const { return joined_; }
  const Membership& members() const { return members_; }
  bool none_ready() const { return ready_.empty(); }
  bool all_members_ready() const;
  // Members that have not joined.
  uint32_t missing() const;

 private:
  Status check_backoff(const std::string& account, TimePoint now) const;
  std::string account_of(const Hello& hello) const;

  const uint32_t at_start_;
  Membership members_;
  std::set<WorkerId> joined_;
  std::set<WorkerId> ready_;               // of joined_
  std::map<WorkerId, TimePoint> offered_;  // reserved indices, and since when
  Quarantine quarantine_;
};

}  // namespace drover

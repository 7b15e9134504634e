// WorkerRoster: which workers have joined, which are ready, and which are members, that is, take
// part in steps; and how workers without an index get one.
//
// Indices below `at_start` belong to workers of the start: these are members from the beginning,
// and their indices are not given away even if they are lost, since they may come back. A worker
// that joins later becomes a member when it is ready and the next step opens.
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
  // How long an index is kept for a process that asked for one, and has data to load.
  static constexpr Duration kPlaceKept = std::chrono::minutes(2);

  // REQUIRES: at_start <= workers.
  WorkerRoster(uint32_t workers, uint32_t at_start);

  // An error is the reason to refuse a worker now.
  Status check(const Hello& hello, TimePoint now) const;
  // REQUIRES: check() has no objection.
  void join(const Hello& hello, TimePoint now);
  // An index for a process of this host. An error is the reason why there is none.
  Result<WorkerId> offer_index(const std::string& host, TimePoint now);

  // Means nothing of a worker that has not joined.
  void on_ready(WorkerId worker);
  // Workers that are ready become members. Returns those that were none, ascending.
  std::vector<WorkerId> add_ready();

  // The connection of a worker ended, or its process did before it had joined. It is not joined or
  // ready any more; whether it stays a member is for remove_member() to say.
  struct Departure {
    bool had_joined = false;
    Quarantine::KeptOut backed_off = {};
  };
  Departure on_lost(WorkerId worker, TimePoint now);
  // The same of a worker that has done all that it was to do: it is not held against it.
  void on_left(WorkerId worker);
  // Returns whether it was a member until now.
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
  Status check_backed_off(const std::string& record, TimePoint now) const;
  std::string record_of(const Hello& hello) const;

  const uint32_t at_start_;
  Membership members_;
  std::set<WorkerId> joined_;
  std::set<WorkerId> ready_;               // of those
  std::map<WorkerId, TimePoint> offered_;  // indices, and when
  Quarantine quarantine_;
};

}  // namespace drover

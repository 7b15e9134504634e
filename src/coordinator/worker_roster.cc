#include "coordinator/worker_roster.h"

#include <algorithm>

#include "core/check.h"
#include "core/duration_text.h"
#include "core/peer.h"

namespace drover {

WorkerRoster::WorkerRoster(uint32_t workers, uint32_t at_start)
    : at_start_(at_start), members_(workers) {
  DROVER_CHECK(at_start <= workers);
  for (WorkerId worker = at_start; worker < workers; ++worker) members_.remove(worker);
}

Status WorkerRoster::check(const Hello& hello, TimePoint now) const {
  const std::string name = peer_name(hello.role, hello.index);
  if (hello.index >= members_.size()) return invalid_input("this run has no " + name);
  // kNotNow: the connected one may be an earlier incarnation, whose end was not noticed yet.
  if (has_joined(hello.index)) return Error{ErrorKind::kNotNow, name + " is already connected"};
  return check_backoff(account_of(hello), now);
}

// Quarantine explains why later workers share the account of their host.
std::string WorkerRoster::account_of(const Hello& hello) const {
  return is_of_start(hello.index) ? peer_name(hello.role, hello.index) : "host " + hello.host;
}

Status WorkerRoster::check_backoff(const std::string& account, TimePoint now) const {
  const Quarantine::Backoff backoff = quarantine_.backoff(account, now);
  if (backoff.wait == Duration::zero()) return done();
  return Error{ErrorKind::kNotNow, account + " was lost " + std::to_string(backoff.losses) +
                                       " times in a row soon after joining; it is readmitted in " +
                                       duration_text(backoff.wait)};
}

void WorkerRoster::join(const Hello& hello, TimePoint now) {
  joined_.insert(hello.index);
  quarantine_.on_joined(hello.index, account_of(hello), now);
  offered_.erase(hello.index);
}

Result<WorkerId> WorkerRoster::offer_index(const std::string& host, TimePoint now) {
  if (const Status admitted = check_backoff("host " + host, now); !admitted)
    return admitted.error();
  for (WorkerId worker = at_start_; worker < members_.size(); ++worker) {
    const auto offered = offered_.find(worker);
    const bool kept = offered != offered_.end() && now < offered->second + kPlaceKept;
    if (kept || has_joined(worker)) continue;
    offered_[worker] = now;
    return worker;
  }
  return invalid_input(members_.size() == at_start_
                           ? "this run takes no more workers; start it with --workers-max"
                           : "all " + std::to_string(members_.size()) +
                                 " worker indices are in use; start the run with a larger "
                                 "--workers-max");
}

void WorkerRoster::on_ready(WorkerId worker) {
  if (has_joined(worker)) ready_.insert(worker);
}

std::vector<WorkerId> WorkerRoster::add_ready() {
  std::vector<WorkerId> added;
  for (const WorkerId worker : ready_) {
    if (members_.add(worker)) added.push_back(worker);
  }
  return added;
}

WorkerRoster::Departure WorkerRoster::on_lost(WorkerId worker, TimePoint now) {
  Departure departure{.had_joined = has_joined(worker)};
  on_left(worker);
  if (departure.had_joined) departure.backoff = quarantine_.on_lost(worker, now);
  return departure;
}

void WorkerRoster::on_left(WorkerId worker) {
  joined_.erase(worker);
  ready_.erase(worker);
}

bool WorkerRoster::all_members_ready() const {
  const std::vector<WorkerId> members = members_.list();
  return std::all_of(members.begin(), members.end(),
                     [&](WorkerId worker) { return is_ready(worker); });
}

uint32_t WorkerRoster::missing() const {
  const std::vector<WorkerId> members = members_.list();
  return static_cast<uint32_t>(std::count_if(members.begin(), members.end(),
                                             [&](WorkerId worker) { return !has_joined(worker); }));
}

}  // namespace drover

#include "coordinator/step_ledger.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/check.h"

namespace drover {
namespace {

// Converts the closing's times to times since the last shard opened the step.
void subtract_lead(Duration lead, StepClosed& closed) {
  closed.elapsed = without_lead(closed.elapsed, lead);
  for (StepClosed::Arrival& arrival : closed.arrivals)
    arrival.run_time = without_lead(arrival.run_time, lead);
  for (StepClosed::Arrival& late : closed.late) {
    if (late.step == closed.step) late.run_time = without_lead(late.run_time, lead);
  }
}

}  // namespace

void StepLedger::open(Step step, Duration at, std::vector<WorkerId> alive, double learning_rate) {
  DROVER_CHECK(step == next_);
  ++next_;
  OpenStep& opened = open_[step];
  opened.at = at;
  opened.alive = std::move(alive);
  opened.learning_rate = learning_rate;
  opened.noise_scale_at_open = noise_scale();
  if (auto early = early_reports_.extract(step)) opened.reports = std::move(early.mapped());
  for (const ShardId shard : names_) opened.leads[shard] = Duration::zero();
  // A shard that has not closed the step before opens this one later: its lead is zero.
  const auto leads = [&](const Closing& closing) {
    return mode_ == StepMode::kSynchronous && closing.step + 1 == step;
  };
  Duration newest{};
  for (const auto& [shard, closing] : last_closing_) {
    if (leads(closing)) newest = std::max(newest, closing.received);
  }
  for (const auto& [shard, closing] : last_closing_)
    opened.leads[shard] = leads(closing) ? newest - closing.received : Duration::zero();
}

void StepLedger::on_busy(WorkerId worker) { open_.at(next_ - 1).busy.insert(worker); }

Duration StepLedger::lead(ShardId shard) const {
  if (open_.empty()) return Duration::zero();
  const std::map<ShardId, Duration>& leads = open_.rbegin()->second.leads;
  const auto found = leads.find(shard);
  return found == leads.end() ? Duration::zero() : found->second;
}

bool StepLedger::expects(ShardId shard, Step step) const {
  const auto found = open_.find(step);
  return found != open_.end() && !found->second.closed.contains(shard);
}

bool StepLedger::on_closed(ShardId shard, StepClosed closed, Duration at) {
  DROVER_CHECK(expects(shard, closed.step));
  for (const StepClosed::Arrival& late : closed.late)
    stragglers_.on_arrived(shard, late.step, late.worker, late.run_time);
  const Step step = closed.step;
  OpenStep& open = open_.at(step);
  // find_arrival() needs arrivals sorted by worker. Peers are not trusted to send them sorted.
  if (!std::ranges::is_sorted(closed.arrivals, {}, &StepClosed::Arrival::worker))
    std::ranges::sort(closed.arrivals, {}, &StepClosed::Arrival::worker);
  if (open.advanced) {
    // The step was advanced: a straggler on other shards may have arrived on this one.
    for (const StepClosed::Arrival& arrival : closed.arrivals)
      stragglers_.on_arrived(shard, step, arrival.worker, arrival.run_time);
  } else {
    open.closed_at = std::max(open.closed_at, at);
  }
  subtract_lead(open.leads[shard], closed);
  open.closed[shard] = std::move(closed);
  last_closing_[shard] = {step, at};
  if (!all_closed(open)) return false;
  finish(step, open);
  return true;
}

void StepLedger::finish(Step step, OpenStep& open) {
  count_outcomes(mode_, open);
  noise_scale_.learn(open.noise);
  open.noise_scale = noise_scale_.value();
  if (mode_ == StepMode::kAsynchronous) {
    forget_unused(open);
    assign_reports();
  } else if (open.advanced) {
    // A worker that had arrived on the shards that closed first, but not on this one, is a
    // straggler that policies never saw as one.
    for (const WorkerId worker : stragglers_of(open)) {
      if (!open.lost.contains(worker) && !open.straggled.contains(worker))
        note_straggler(step, worker, open, /*known_to_policy=*/false);
    }
  } else {
    note_stragglers(step, open);
  }
}

bool StepLedger::everything_closed() const {
  return std::all_of(open_.begin(), open_.end(),
                     [&](const auto& entry) { return all_closed(entry.second); });
}

Step StepLedger::steps_open_before(Step step) const {
  const auto first = std::find_if(open_.begin(), open_.end(),
                                  [&](const auto& entry) { return !all_closed(entry.second); });
  return first == open_.end() || first->first > step ? 0 : step - first->first;
}

void StepLedger::advance(Step step, Duration at) {
  OpenStep& open = open_.at(step);
  DROVER_CHECK(mode_ == StepMode::kSynchronous && !open.closed.empty() && !all_closed(open) &&
               !open.advanced);
  count_outcomes(mode_, open);
  open.advanced = true;
  open.closed_at = at;
  const std::vector<WorkerId> late = stragglers_of(open);
  open.straggled.insert(late.begin(), late.end());
  note_stragglers(step, open);
}

void StepLedger::note_stragglers(Step step, const OpenStep& open) {
  for (const WorkerId worker : stragglers_of(open)) {
    if (!open.lost.contains(worker)) note_straggler(step, worker, open, /*known_to_policy=*/true);
  }
  stragglers_.forget_before(step);
}

void StepLedger::note_straggler(Step step, WorkerId worker, const OpenStep& open,
                                bool known_to_policy) {
  StragglerBook::Straggler straggler;
  straggler.was_busy = !known_to_policy || open.busy.contains(worker);
  const auto report = open.reports.find(worker);
  if (report != open.reports.end()) straggler.report = report->second;
  for (const auto& [shard, lead] : open.leads) {
    const auto closed = open.closed.find(shard);
    const StepClosed::Arrival* const arrival =
        closed == open.closed.end() ? nullptr : find_arrival(closed->second, worker);
    if (arrival != nullptr) {
      straggler.run_time = std::max(straggler.run_time, arrival->run_time);
    } else {
      straggler.missing_on.emplace(shard, lead);
    }
  }
  stragglers_.add(step, worker, std::move(straggler));
}

void StepLedger::on_lost(WorkerId worker) {
  for (auto& [step, open] : open_) {
    if (!all_closed(open)) open.lost.insert(worker);
  }
}

const OpenStep& StepLedger::closed_step(Step step) const {
  const OpenStep& open = open_.at(step);
  DROVER_CHECK(all_closed(open) || open.advanced);
  return open;
}

std::vector<WorkerId> StepLedger::stragglers(Step step) const {
  return stragglers_of(closed_step(step));
}

StepTimes StepLedger::times(Step step, uint32_t workers) const {
  return times_of(step, closed_step(step), workers);
}

void StepLedger::on_report(WorkerId worker, const StepReport& report) {
  if (mode_ == StepMode::kAsynchronous) {
    // A gradient with a loss that is not finite was refused, and is in no round.
    if (!std::isfinite(report.loss)) return;
    unassigned_.emplace_back(worker, report);
    if (unassigned_.size() > kReportsKept) unassigned_.pop_front();
    return assign_reports();
  }
  stragglers_.on_report(worker, report);
  if (report.step >= next_ && report.step < next_ + kStepsRemembered)
    early_reports_[report.step][worker] = report;
  const auto found = open_.find(report.step);
  if (found == open_.end()) return;
  OpenStep& open = found->second;
  const bool first = open.reports.insert_or_assign(worker, report).second;
  if (!first || !all_closed(open)) return;
  const auto place = std::lower_bound(open.alive.begin(), open.alive.end(), worker);
  if (place == open.alive.end() || *place != worker) return;
  if (open.outcomes[static_cast<size_t>(place - open.alive.begin())].arrived)
    --open.reports_missing;
}

std::set<WorkerId> StepLedger::unreported() const {
  std::set<WorkerId> workers;
  for (const auto& [step, open] : open_) {
    if (!all_closed(open)) continue;
    for (size_t i = 0; i < open.alive.size(); ++i) {
      if (open.outcomes[i].arrived && !open.reports.contains(open.alive[i]))
        workers.insert(open.alive[i]);
    }
  }
  return workers;
}

// A gradient that was dropped as an outlier is in no round, but its worker reports about it.
void StepLedger::forget_unused(const OpenStep& open) {
  for (const WorkerId worker : open.outliers) {
    const auto found = std::find_if(unassigned_.begin(), unassigned_.end(),
                                    [&](const auto& each) { return each.first == worker; });
    if (found != unassigned_.end()) unassigned_.erase(found);
  }
}

void StepLedger::assign_reports() {
  for (auto& [step, open] : open_) {
    if (!all_closed(open)) return;
    for (; open.reports_missing > 0 && !unassigned_.empty(); --open.reports_missing) {
      const auto& [worker, report] = unassigned_.front();
      open.reports[worker] = report;
      open.round.push_back(report);
      unassigned_.pop_front();
    }
  }
}

std::vector<StepSummary> StepLedger::take_summaries(bool all) {
  std::vector<StepSummary> summaries;
  while (!open_.empty() && all_closed(open_.begin()->second)) {
    const auto first = open_.begin();
    const bool overdue =
        open_.size() > kReportPatience && all_closed(std::next(first, kReportPatience)->second);
    if (!all && !overdue && first->second.reports_missing > 0) break;
    summaries.push_back(summarise(first->first, mode_, first->second));
    summaries.back().step.late = stragglers_.take_count();
    open_.erase(first);
  }
  return summaries;
}

}  // namespace drover

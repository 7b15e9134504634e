#include "server/step_ledger.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "core/check.h"

namespace drover {
namespace {

constexpr size_t kStragglersKept = 100'000;

auto find_arrival(const StepClosed& closed, WorkerId worker) {
  return std::find_if(closed.arrivals.begin(), closed.arrivals.end(),
                      [&](const auto& each) { return each.worker == worker; });
}

}  // namespace

void StepLedger::open(Step step, Duration at, std::vector<WorkerId> alive, double learning_rate) {
  DROVER_CHECK(step == next_);
  ++next_;
  Open& opened = open_[step];
  opened.at = at;
  opened.alive = std::move(alive);
  opened.learning_rate = learning_rate;
  opened.reports = std::exchange(early_reports_, {});
}

bool StepLedger::expects(ShardId shard, Step step) const {
  const auto found = open_.find(step);
  return found != open_.end() && !found->second.closed.contains(shard);
}

bool StepLedger::on_closed(ShardId shard, const StepClosed& closed, Duration at) {
  DROVER_CHECK(expects(shard, closed.step));
  for (const StepClosed::Arrival& late : closed.late) {
    const auto found = stragglers_.find({late.step, late.worker});
    if (found == stragglers_.end()) continue;
    Straggler& straggler = found->second;
    straggler.missing_on.erase(shard);
    straggler.run_time = std::max(straggler.run_time, late.run_time);
    if (!straggler.missing_on.empty()) continue;
    ++late_since_told_;
    late_news_.push_back(
        {.step = late.step, .worker = late.worker, .run_time = straggler.run_time});
    stragglers_.erase(found);
  }

  Open& open = open_.at(closed.step);
  open.closed[shard] = closed;
  open.closed_at = at;
  if (!all_closed(open)) return false;
  for (const WorkerId worker : stragglers(closed.step)) {
    Straggler& straggler = stragglers_[{closed.step, worker}];
    for (const auto& [each, news] : open.closed) {
      const auto arrival = find_arrival(news, worker);
      if (arrival == news.arrivals.end())
        straggler.missing_on.insert(each);
      else
        straggler.run_time = std::max(straggler.run_time, arrival->run_time);
    }
  }
  while (stragglers_.size() > kStragglersKept) stragglers_.erase(stragglers_.begin());
  return true;
}

std::vector<WorkerId> StepLedger::stragglers(Step step) const {
  const Open& open = open_.at(step);
  std::vector<WorkerId> late;
  std::copy_if(open.alive.begin(), open.alive.end(), std::back_inserter(late),
               [&](WorkerId worker) { return !run_time(open, worker).second; });
  return late;
}

void StepLedger::on_report(WorkerId worker, const StepReport& report) {
  if (report.step == next_) early_reports_[worker] = report;
  const auto found = open_.find(report.step);
  if (found != open_.end()) found->second.reports[worker] = report;
}

bool StepLedger::has_refusal(const Open& open, WorkerId worker) {
  return std::any_of(open.closed.begin(), open.closed.end(), [&](const auto& entry) {
    const auto& refused = entry.second.refused;
    return std::any_of(refused.begin(), refused.end(),
                       [&](const auto& each) { return each.worker == worker; });
  });
}

std::pair<Duration, bool> StepLedger::run_time(const Open& open, WorkerId worker) {
  Duration known{};
  Duration bound{};
  bool complete = true;
  for (const auto& [shard, closed] : open.closed) {
    const auto arrival = find_arrival(closed, worker);
    if (arrival == closed.arrivals.end()) {
      complete = false;
      bound = std::max(bound, closed.elapsed);
    } else {
      known = std::max(known, arrival->run_time);
    }
  }
  return {complete ? known : std::max(known, bound), complete};
}

bool StepLedger::reports_complete(const Open& open) {
  return std::all_of(open.alive.begin(), open.alive.end(), [&](WorkerId worker) {
    return open.reports.contains(worker) || !run_time(open, worker).second;
  });
}

std::vector<StepStory> StepLedger::take_told(bool all) {
  std::vector<StepStory> told;
  while (!open_.empty() && all_closed(open_.begin()->second)) {
    const auto first = open_.begin();
    const bool overdue =
        open_.size() > kReportPatience && all_closed(std::next(first, kReportPatience)->second);
    if (!all && !overdue && !reports_complete(first->second)) break;
    told.push_back(tell(first->first, first->second));
    told.back().step.late = std::exchange(late_since_told_, 0);
    open_.erase(first);
  }
  return told;
}

std::vector<ArrivalRecord> StepLedger::take_late() { return std::exchange(late_news_, {}); }

StepStory StepLedger::tell(Step step, const Open& open) const {
  StepStory story;
  StepRecord& record = story.step;
  record.step = step;
  record.at = open.at;
  record.elapsed = open.closed_at - open.at;
  record.learning_rate = open.learning_rate;
  record.samples = ~uint64_t{0};
  std::set<WorkerId> refused_by;
  for (const auto& [shard, closed] : open.closed) {
    record.aggregate = std::max(record.aggregate, closed.busy);
    if (closed.samples > 0 || !closed.refused.empty())
      record.samples = std::min(record.samples, closed.samples);
    for (const StepClosed::Refused& refused : closed.refused) refused_by.insert(refused.worker);
    story.refused.insert(story.refused.end(), closed.refused.begin(), closed.refused.end());
  }
  if (record.samples == ~uint64_t{0}) record.samples = 0;
  record.refused = static_cast<uint32_t>(refused_by.size());

  double loss = 0.0;
  uint64_t reported = 0;
  uint64_t correct = 0;
  uint64_t predictions = 0;
  Duration last{-1};
  for (const WorkerId worker : open.alive) {
    const auto [time, arrived] = run_time(open, worker);
    const auto report = open.reports.find(worker);
    const bool known = report != open.reports.end();
    story.arrivals.push_back({.step = step,
                              .worker = worker,
                              .run_time = time,
                              .censored = !arrived,
                              .compute = known ? report->second.compute : Duration::zero()});
    if (!arrived) continue;
    if (time > last) {
      last = time;
      record.last_worker = worker;
    }
    if (has_refusal(open, worker)) continue;
    ++record.contributors;
    if (!known) continue;
    loss += report->second.loss * report->second.samples;
    reported += report->second.samples;
    correct += report->second.correct;
    predictions += report->second.predictions;
  }
  // Nothing is known of a step to which nobody contributed: not a number, rather than a perfect
  // zero.
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  record.loss = reported > 0 ? loss / static_cast<double>(reported) : kUnknown;
  record.accuracy =
      predictions > 0 ? static_cast<double>(correct) / static_cast<double>(predictions) : kUnknown;
  return story;
}

}  // namespace drover

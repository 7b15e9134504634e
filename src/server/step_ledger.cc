#include "server/step_ledger.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/check.h"

namespace drover {
namespace {

// Nothing is known: not a number, rather than a perfect zero.
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

bool by_worker(const StepClosed::Arrival& a, const StepClosed::Arrival& b) {
  return a.worker < b.worker;
}

// A worker may be so quick only where the news of the opening was slow: then it took some time at
// least.
Duration less_lead(Duration since_own_opening, Duration lead) {
  return std::max(since_own_opening - lead, Duration(1));
}

// Null if the worker has not arrived there.
const StepClosed::Arrival* find_arrival(const StepClosed& closed, WorkerId worker) {
  const auto found = std::lower_bound(closed.arrivals.begin(), closed.arrivals.end(),
                                      StepClosed::Arrival{.worker = worker}, by_worker);
  return found == closed.arrivals.end() || found->worker != worker ? nullptr : &*found;
}

// How long the worker took there, or, if that is not known, is known to have taken.
Duration waited(const StepClosed& closed, WorkerId worker) {
  if (const StepClosed::Arrival* arrival = find_arrival(closed, worker)) return arrival->run_time;
  const auto late =
      std::find_if(closed.late.begin(), closed.late.end(), [&](const StepClosed::Arrival& each) {
        return each.worker == worker && each.step == closed.step;
      });
  return late != closed.late.end() ? late->run_time : closed.elapsed;
}

}  // namespace

void StepLedger::open(Step step, Duration at, std::vector<WorkerId> alive, double learning_rate) {
  DROVER_CHECK(step == next_);
  ++next_;
  Open& opened = open_[step];
  opened.at = at;
  opened.alive = std::move(alive);
  opened.learning_rate = learning_rate;
  opened.noise_scale_told = noise_scale();
  if (auto early = early_reports_.extract(step)) opened.reports = std::move(early.mapped());
  for (const ShardId shard : names_) opened.leads[shard] = Duration::zero();
  // A shard that has not closed the step before opens this one later, and leads nobody.
  const auto leads = [&](const News& news) { return !free_running_ && news.step + 1 == step; };
  Duration newest{};
  for (const auto& [shard, news] : last_news_) {
    if (leads(news)) newest = std::max(newest, news.heard);
  }
  for (const auto& [shard, news] : last_news_)
    opened.leads[shard] = leads(news) ? newest - news.heard : Duration::zero();
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
  note_late(shard, closed.late);
  const Step step = closed.step;
  Open& open = open_.at(step);
  // Shards tell them by worker; they are looked up by that order, so it is not taken on trust.
  if (!std::is_sorted(closed.arrivals.begin(), closed.arrivals.end(), by_worker))
    std::sort(closed.arrivals.begin(), closed.arrivals.end(), by_worker);
  const Duration lead = open.leads[shard];
  closed.elapsed = less_lead(closed.elapsed, lead);
  for (StepClosed::Arrival& arrival : closed.arrivals)
    arrival.run_time = less_lead(arrival.run_time, lead);
  for (StepClosed::Arrival& late : closed.late) {
    if (late.step == step) late.run_time = less_lead(late.run_time, lead);
  }
  const StepClosed& kept = open.closed[shard] = std::move(closed);
  last_news_[shard] = {step, at};
  if (open.advanced) {
    resolve(shard, step, kept);
  } else {
    open.closed_at = std::max(open.closed_at, at);
  }
  if (!all_closed(open)) return false;
  sum_up(open);
  noise_scale_.learn(open.noise);
  open.noise_scale = noise_scale_.value();
  if (free_running_) {
    forget_unused(open);
    deal_reports();
  } else if (open.advanced) {
    note_more_stragglers(step, open);
  } else {
    note_stragglers(step, open);
  }
  return true;
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
  Open& open = open_.at(step);
  DROVER_CHECK(!free_running_ && !open.closed.empty() && !all_closed(open) && !open.advanced);
  sum_up(open);
  open.advanced = true;
  open.closed_at = at;
  const std::vector<WorkerId> late = stragglers(step);
  open.straggled.insert(late.begin(), late.end());
  note_stragglers(step, open);
}

// A shard has closed a step that counted as closed: who straggled elsewhere may have come here.
void StepLedger::resolve(ShardId shard, Step step, const StepClosed& closed) {
  const Duration lead = open_.at(step).leads[shard];  // which is off these run-times already
  for (const StepClosed::Arrival& arrival : closed.arrivals)
    note_late(shard, step, arrival.worker, arrival.run_time + lead);
}

void StepLedger::note_late(ShardId shard, const std::vector<StepClosed::Arrival>& late) {
  for (const StepClosed::Arrival& each : late)
    note_late(shard, each.step, each.worker, each.run_time);
}

void StepLedger::note_late(ShardId shard, Step step, WorkerId worker, Duration run_time) {
  const auto found = stragglers_.find({step, worker});
  if (found == stragglers_.end()) return;
  Straggler& straggler = found->second;
  const auto lead = straggler.missing_on.find(shard);
  if (lead == straggler.missing_on.end()) return;
  straggler.run_time = std::max(straggler.run_time, less_lead(run_time, lead->second));
  straggler.missing_on.erase(lead);
  if (!straggler.missing_on.empty()) return;
  ++late_since_told_;
  late_news_.push_back({step, worker, straggler.run_time, straggler.was_busy});
  const ArrivalRecord record{.step = step, .worker = worker, .run_time = straggler.run_time};
  if (straggler.report) {
    record_late(record, *straggler.report);
  } else {
    unreported_[found->first] = record;
  }
  stragglers_.erase(found);
}

void StepLedger::record_late(ArrivalRecord record, const StepReport& report) {
  record.compute = report.compute;
  record.samples = report.samples;
  late_records_.push_back(record);
}

void StepLedger::note_stragglers(Step step, const Open& open) {
  for (const WorkerId worker : stragglers(step)) {
    if (!open.gone.contains(worker)) note_straggler(step, worker, open, false);
  }
  while (!stragglers_.empty() && stragglers_.begin()->first.first + kStepsRemembered < step)
    stragglers_.erase(stragglers_.begin());
  for (auto oldest = unreported_.begin();
       oldest != unreported_.end() && oldest->first.first + kStepsRemembered < step;
       oldest = unreported_.erase(oldest)) {
    late_records_.push_back(oldest->second);
  }
}

void StepLedger::note_straggler(Step step, WorkerId worker, const Open& open, bool untold) {
  Straggler& straggler = stragglers_[{step, worker}];
  straggler.was_busy = untold || open.busy.contains(worker);
  const auto report = open.reports.find(worker);
  if (report != open.reports.end()) straggler.report = report->second;
  for (const auto& [shard, lead] : open.leads) {
    const auto news = open.closed.find(shard);
    const StepClosed::Arrival* const arrival =
        news == open.closed.end() ? nullptr : find_arrival(news->second, worker);
    if (arrival != nullptr) {
      straggler.run_time = std::max(straggler.run_time, arrival->run_time);
    } else {
      straggler.missing_on.emplace(shard, lead);
    }
  }
}

// The last shard has closed a step that counted as closed: who had come everywhere else, but not
// here, is recorded as a straggler, of which nobody was told.
void StepLedger::note_more_stragglers(Step step, const Open& open) {
  for (const WorkerId worker : stragglers(step)) {
    if (!open.gone.contains(worker) && !open.straggled.contains(worker))
      note_straggler(step, worker, open, true);
  }
}

void StepLedger::on_lost(WorkerId worker) {
  for (auto& [step, open] : open_) {
    if (!all_closed(open)) open.gone.insert(worker);
  }
}

void StepLedger::sum_up(Open& open) const {
  uint32_t gradients = ~uint32_t{0};
  open.outcomes.clear();
  open.refused.clear();
  open.outliers.clear();
  open.noise = {};
  open.contributors = 0;
  open.reports_missing = 0;
  for (const auto& [shard, closed] : open.closed) {
    for (const StepClosed::Refused& refused : closed.refused) open.refused.insert(refused.worker);
    for (const StepClosed::Outlier& outlier : closed.outliers) {
      if (!outlier.used) open.outliers.insert(outlier.worker);
    }
    gradients = std::min(gradients, closed.gradients);
    open.noise += {.signal = closed.signal, .noise = closed.noise};
  }
  open.outcomes.reserve(open.alive.size());
  for (const WorkerId worker : open.alive) {
    open.outcomes.push_back(outcome_of(open, worker));
    if (open.outcomes.back().arrived && !open.reports.contains(worker)) ++open.reports_missing;
    if (contributed(open, open.outcomes.size() - 1)) ++open.contributors;
  }
  if (free_running_) open.reports_missing = open.contributors = gradients;
}

StepLedger::Outcome StepLedger::outcome_of(const Open& open, WorkerId worker) const {
  Outcome outcome{.arrived = !free_running_};
  for (const auto& [shard, closed] : open.closed) {
    const StepClosed::Arrival* arrival = find_arrival(closed, worker);
    if (free_running_) {
      // The same gradient may be in one round on this shard and in the next on another.
      outcome.arrived = outcome.arrived || arrival != nullptr;
      if (arrival != nullptr) outcome.run_time = std::max(outcome.run_time, arrival->run_time);
      continue;
    }
    outcome.arrived = outcome.arrived && arrival != nullptr;
    outcome.run_time = std::max(outcome.run_time, waited(closed, worker));
  }
  return outcome;
}

bool StepLedger::is_refused(const Open& open, WorkerId worker) {
  return open.refused.contains(worker) || open.outliers.contains(worker);
}

bool StepLedger::contributed(const Open& open, size_t position) {
  return open.outcomes[position].arrived && !is_refused(open, open.alive[position]);
}

// Whether its gradient is in the step: as a whole, or, where workers go on without some blocks, in
// all blocks of some shard.
bool StepLedger::took_part(const Open& open, size_t position, const StepReport& report) {
  const WorkerId worker = open.alive[position];
  if (contributed(open, position)) return true;
  return report.blocks > 0 && !is_refused(open, worker) &&
         std::any_of(open.closed.begin(), open.closed.end(), [&](const auto& entry) {
           return find_arrival(entry.second, worker) != nullptr;
         });
}

const StepLedger::Open& StepLedger::closed_step(Step step) const {
  const Open& open = open_.at(step);
  DROVER_CHECK(all_closed(open) || open.advanced);
  return open;
}

std::vector<WorkerId> StepLedger::stragglers(Step step) const {
  const Open& open = closed_step(step);
  std::vector<WorkerId> late;
  for (size_t i = 0; i < open.alive.size(); ++i) {
    if (!open.outcomes[i].arrived) late.push_back(open.alive[i]);
  }
  return late;
}

StepTimes StepLedger::times(Step step, uint32_t workers) const {
  const Open& open = closed_step(step);
  StepTimes times{.step = step,
                  .seconds = std::vector<double>(workers, 0.0),
                  .known = std::vector<Known>(workers, Known::kNothing),
                  .elapsed = 0.0,
                  .contributors = open.contributors};
  // As the shards' clocks measured it, like the run-times.
  for (const auto& [shard, closed] : open.closed)
    times.elapsed = std::max(times.elapsed, seconds(closed.elapsed));
  for (size_t i = 0; i < open.alive.size(); ++i) {
    const WorkerId worker = open.alive[i];
    const Outcome& outcome = open.outcomes[i];
    if (!outcome.arrived && (open.gone.contains(worker) || open.busy.contains(worker))) continue;
    times.seconds[worker] = seconds(outcome.run_time);
    times.known[worker] = outcome.arrived ? Known::kArrived : Known::kLonger;
  }
  return times;
}

void StepLedger::on_report(WorkerId worker, const StepReport& report) {
  if (free_running_) {
    // A gradient with such a loss was refused, and is in no round.
    if (!std::isfinite(report.loss)) return;
    undealt_.emplace_back(worker, report);
    if (undealt_.size() > kReportsKept) undealt_.pop_front();
    return deal_reports();
  }
  const auto late = stragglers_.find({report.step, worker});
  if (late != stragglers_.end()) late->second.report = report;
  if (const auto record = unreported_.find({report.step, worker}); record != unreported_.end()) {
    record_late(record->second, report);
    unreported_.erase(record);
  }
  if (report.step >= next_ && report.step < next_ + kStepsRemembered)
    early_reports_[report.step][worker] = report;
  const auto found = open_.find(report.step);
  if (found == open_.end()) return;
  Open& open = found->second;
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

// A gradient that was out of line and not used is in no round, but its worker reports of it.
void StepLedger::forget_unused(const Open& open) {
  for (const WorkerId worker : open.outliers) {
    const auto found = std::find_if(undealt_.begin(), undealt_.end(),
                                    [&](const auto& each) { return each.first == worker; });
    if (found != undealt_.end()) undealt_.erase(found);
  }
}

void StepLedger::deal_reports() {
  for (auto& [step, open] : open_) {
    if (!all_closed(open)) return;
    for (; open.reports_missing > 0 && !undealt_.empty(); --open.reports_missing) {
      const auto& [worker, report] = undealt_.front();
      open.reports[worker] = report;
      open.round.push_back(report);
      undealt_.pop_front();
    }
  }
}

std::vector<StepStory> StepLedger::take_told(bool all) {
  std::vector<StepStory> told;
  while (!open_.empty() && all_closed(open_.begin()->second)) {
    const auto first = open_.begin();
    const bool overdue =
        open_.size() > kReportPatience && all_closed(std::next(first, kReportPatience)->second);
    if (!all && !overdue && first->second.reports_missing > 0) break;
    told.push_back(tell(first->first, first->second));
    told.back().step.late = std::exchange(late_since_told_, 0);
    open_.erase(first);
  }
  return told;
}

std::vector<LateNews> StepLedger::take_late() { return std::exchange(late_news_, {}); }

std::vector<ArrivalRecord> StepLedger::take_late_records(bool all) {
  if (all) {
    for (const auto& [key, record] : unreported_) late_records_.push_back(record);
    unreported_.clear();
  }
  return std::exchange(late_records_, {});
}

StepStory StepLedger::tell(Step step, const Open& open) const {
  StepStory story;
  StepRecord& record = story.step;
  record.step = step;
  record.at = open.at;
  record.elapsed = open.closed_at - open.at;
  record.learning_rate = open.learning_rate;
  for (const auto& [worker, report] : open.reports) {
    if (!report.learning_rate) continue;
    record.learning_rate = *report.learning_rate;  // of the least, as on shards
    break;
  }
  record.samples = ~uint64_t{0};
  for (const auto& [shard, closed] : open.closed) {
    record.aggregate = std::max(record.aggregate, closed.busy);
    record.closing = std::max(record.closing, closed.closing);
    record.loads.push_back({shard, closed.busy});
    record.undecided = std::max(record.undecided, closed.undecided);
    if (closed.samples > 0 || !closed.refused.empty() || !open.outliers.empty())
      record.samples = std::min(record.samples, closed.samples);
    story.refused.insert(story.refused.end(), closed.refused.begin(), closed.refused.end());
  }
  if (record.samples == ~uint64_t{0}) record.samples = 0;
  std::map<uint32_t, uint32_t> counts;
  for (const auto& [shard, closed] : open.closed) {
    for (const BlockCount& count : closed.block_counts) counts[count.contributors] += count.blocks;
  }
  for (const auto& [contributors, blocks] : counts)
    record.block_counts.push_back({contributors, blocks});
  record.refused = static_cast<uint32_t>(open.refused.size());
  record.contributors = open.contributors;
  record.signal = open.noise.signal;
  record.noise = open.noise.noise;
  story.noise_scale_told = open.noise_scale_told;
  record.noise_scale = open.noise_scale > 0.0 ? open.noise_scale : kUnknown;
  tell_outliers(open, story);
  tell_arrivals(open, story);
  tell_loss(open, record);
  tell_freshness(open, record);
  return story;
}

void StepLedger::tell_outliers(const Open& open, StepStory& story) {
  std::map<WorkerId, StepClosed::Outlier> all;
  for (const auto& [shard, closed] : open.closed) {
    for (const StepClosed::Outlier& each : closed.outliers) {
      const auto [place, is_new] = all.try_emplace(each.worker, each);
      if (is_new) continue;
      StepClosed::Outlier& sum = place->second;
      sum.blocks += each.blocks;
      sum.used = sum.used && each.used;
      if (each.ratio <= sum.ratio) continue;
      sum.ratio = each.ratio;
      sum.block = each.block;
    }
  }
  for (const auto& [worker, each] : all) {
    story.outliers.push_back(each);
    story.step.outliers.push_back(
        {.worker = worker, .blocks = each.blocks, .ratio = each.ratio, .used = each.used});
  }
}

void StepLedger::tell_arrivals(const Open& open, StepStory& story) const {
  Duration last{-1};
  for (size_t i = 0; i < open.alive.size(); ++i) {
    const WorkerId worker = open.alive[i];
    const Outcome& outcome = open.outcomes[i];
    if (free_running_ && !outcome.arrived) continue;
    const auto report = open.reports.find(worker);
    story.arrivals.push_back(
        {.step = story.step.step,
         .worker = worker,
         .run_time = outcome.run_time,
         .censored = !outcome.arrived,
         .compute = report != open.reports.end() ? report->second.compute : Duration::zero(),
         .samples = report != open.reports.end() ? report->second.samples : 0});
    if (!outcome.arrived || outcome.run_time <= last) continue;
    last = outcome.run_time;
    story.step.last_worker = worker;
  }
}

// Over those whose gradients were used, as for the loss.
void StepLedger::tell_freshness(const Open& open, StepRecord& record) const {
  double fresh = 0.0;
  double staleness = 0.0;
  size_t told = 0;
  for (size_t i = 0; i < open.alive.size() && !free_running_; ++i) {
    const auto found = open.reports.find(open.alive[i]);
    if (found == open.reports.end() || found->second.blocks == 0) continue;
    const StepReport& report = found->second;
    if (!took_part(open, i, report)) continue;
    const double share = static_cast<double>(report.fresh) / report.blocks;
    fresh += share;
    record.fresh_min = told == 0 ? share : std::min(record.fresh_min, share);
    staleness += static_cast<double>(report.staleness_sum) / report.blocks;
    record.staleness_max = std::max(record.staleness_max, report.staleness_max);
    ++told;
  }
  if (told == 0) return;
  record.fresh_mean = fresh / static_cast<double>(told);
  record.staleness_mean = staleness / static_cast<double>(told);
}

void StepLedger::tell_loss(const Open& open, StepRecord& record) const {
  double loss = 0.0;
  uint64_t samples = 0;
  uint64_t correct = 0;
  uint64_t predictions = 0;
  const auto add = [&](const StepReport& report) {
    loss += report.loss * report.samples;
    samples += report.samples;
    correct += report.correct;
    predictions += report.predictions;
  };
  for (const StepReport& report : open.round) add(report);
  for (size_t i = 0; i < open.alive.size() && !free_running_; ++i) {
    const auto found = open.reports.find(open.alive[i]);
    if (found != open.reports.end() && took_part(open, i, found->second)) add(found->second);
  }
  record.loss = samples > 0 ? loss / static_cast<double>(samples) : kUnknown;
  record.accuracy =
      predictions > 0 ? static_cast<double>(correct) / static_cast<double>(predictions) : kUnknown;
}

}  // namespace drover

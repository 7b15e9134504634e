#include "coordinator/step_summary.h"

#include <algorithm>
#include <limits>
#include <map>

namespace drover {
namespace {

// NaN if there is no sample: 0 would read as a perfect loss.
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr uint64_t kNoSamples = std::numeric_limits<uint64_t>::max();

// A rate set by a worker has priority. Of several, the lowest worker index wins, as on shards.
double learning_rate_of(const OpenStep& open) {
  for (const auto& [worker, report] : open.reports) {
    if (report.learning_rate) return *report.learning_rate;
  }
  return open.learning_rate;
}

void summarise_closings(const OpenStep& open, StepSummary& summary) {
  StepRecord& record = summary.step;
  record.samples = kNoSamples;
  std::map<uint32_t, uint32_t> counts;
  for (const auto& [shard, closed] : open.closed) {
    record.aggregate = std::max(record.aggregate, closed.busy);
    record.closing = std::max(record.closing, closed.closing);
    record.loads.push_back({shard, closed.busy});
    record.undecided = std::max(record.undecided, closed.undecided);
    if (closed.samples > 0 || !closed.refused.empty() || !open.outliers.empty())
      record.samples = std::min(record.samples, closed.samples);
    summary.refused.insert(summary.refused.end(), closed.refused.begin(), closed.refused.end());
    for (const BlockCount& count : closed.block_counts) counts[count.contributors] += count.blocks;
  }
  if (record.samples == kNoSamples) record.samples = 0;
  for (const auto& [contributors, blocks] : counts)
    record.block_counts.push_back({contributors, blocks});
}

void summarise_outliers(const OpenStep& open, StepSummary& summary) {
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
    summary.outliers.push_back(each);
    summary.step.outliers.push_back(
        {.worker = worker, .blocks = each.blocks, .ratio = each.ratio, .used = each.used});
  }
}

void summarise_arrivals(StepMode mode, const OpenStep& open, StepSummary& summary) {
  Duration last{-1};
  for (size_t i = 0; i < open.alive.size(); ++i) {
    const WorkerId worker = open.alive[i];
    const WorkerOutcome& outcome = open.outcomes[i];
    if (mode == StepMode::kAsynchronous && !outcome.arrived) continue;
    const auto report = open.reports.find(worker);
    summary.arrivals.push_back(
        {.step = summary.step.step,
         .worker = worker,
         .run_time = outcome.run_time,
         .censored = !outcome.arrived,
         .compute = report != open.reports.end() ? report->second.compute : Duration::zero(),
         .samples = report != open.reports.end() ? report->second.samples : 0});
    if (!outcome.arrived || outcome.run_time <= last) continue;
    last = outcome.run_time;
    summary.step.last_worker = worker;
  }
}

// The reports of the gradients that were used. Asynchronous: those of the round.
std::vector<const StepReport*> reports_used(StepMode mode, const OpenStep& open) {
  std::vector<const StepReport*> used;
  if (mode == StepMode::kAsynchronous) {
    for (const StepReport& report : open.round) used.push_back(&report);
    return used;
  }
  for (size_t i = 0; i < open.alive.size(); ++i) {
    const auto found = open.reports.find(open.alive[i]);
    if (found != open.reports.end() && took_part(open, i, found->second))
      used.push_back(&found->second);
  }
  return used;
}

void summarise_loss(const std::vector<const StepReport*>& reports, StepRecord& record) {
  double loss = 0.0;
  uint64_t samples = 0;
  uint64_t correct = 0;
  uint64_t predictions = 0;
  for (const StepReport* report : reports) {
    loss += report->loss * report->samples;
    samples += report->samples;
    correct += report->correct;
    predictions += report->predictions;
  }
  record.loss = samples > 0 ? loss / static_cast<double>(samples) : kUnknown;
  record.accuracy =
      predictions > 0 ? static_cast<double>(correct) / static_cast<double>(predictions) : kUnknown;
}

// With partial pulls. REQUIRES: the step is synchronous.
void summarise_freshness(const std::vector<const StepReport*>& reports, StepRecord& record) {
  double fresh = 0.0;
  double staleness = 0.0;
  size_t count = 0;
  for (const StepReport* report : reports) {
    if (report->blocks == 0) continue;
    const double share = static_cast<double>(report->fresh) / report->blocks;
    fresh += share;
    record.fresh_min = count == 0 ? share : std::min(record.fresh_min, share);
    staleness += static_cast<double>(report->staleness_sum) / report->blocks;
    record.staleness_max = std::max(record.staleness_max, report->staleness_max);
    ++count;
  }
  if (count == 0) return;
  record.fresh_mean = fresh / static_cast<double>(count);
  record.staleness_mean = staleness / static_cast<double>(count);
}

}  // namespace

StepSummary summarise(Step step, StepMode mode, const OpenStep& open) {
  StepSummary summary;
  StepRecord& record = summary.step;
  record.step = step;
  record.at = open.at;
  record.elapsed = open.closed_at - open.at;
  record.learning_rate = learning_rate_of(open);
  record.refused = static_cast<uint32_t>(open.refused.size());
  record.contributors = open.contributors;
  record.signal = open.noise.signal;
  record.noise = open.noise.noise;
  record.noise_scale = open.noise_scale > 0.0 ? open.noise_scale : kUnknown;
  summary.noise_scale_at_open = open.noise_scale_at_open;
  summarise_closings(open, summary);
  summarise_outliers(open, summary);
  summarise_arrivals(mode, open, summary);
  const std::vector<const StepReport*> reports = reports_used(mode, open);
  summarise_loss(reports, record);
  if (mode == StepMode::kSynchronous) summarise_freshness(reports, record);
  return summary;
}

}  // namespace drover

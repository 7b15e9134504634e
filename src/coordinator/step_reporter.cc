#include "coordinator/step_reporter.h"

#include <algorithm>
#include <utility>

namespace drover {
namespace {

bool is_power_of_ten(uint64_t number) {
  while (number >= 10 && number % 10 == 0) number /= 10;
  return number == 1;
}

// One event for each worker, with the first tensor that had NaN or infinity.
void report_refused(Step step, const std::vector<StepClosed::Refused>& refused,
                    const BlockMap& blocks, Duration now, std::vector<RunRecord>& out) {
  std::map<WorkerId, BlockId> first;
  for (const StepClosed::Refused& each : refused) first.try_emplace(each.worker, each.block);
  for (const auto& [worker, block] : first) {
    out.emplace_back(EventRecord{.at = now,
                                 .step = step,
                                 .peer = Peer{Role::kWorker, worker},
                                 .payload = event::Refused{.tensor = blocks.tensor_of(block)}});
  }
}

}  // namespace

void StepReporter::report(std::vector<StepSummary> summaries, const BlockMap& blocks, RateRule rule,
                          Duration now, std::vector<RunRecord>& out) {
  for (StepSummary& summary : summaries) {
    summary.step.learning_rate *= rate_factor_of(summary, rule);
    empty_steps_ = is_empty(summary.step) ? empty_steps_ + 1 : 0;
    diverged_ = diverged_ || empty_steps_ >= kEmptyStepsMax;
    report_outliers(summary, blocks, now, out);
    const Step step = summary.step.step;
    const std::vector<StepClosed::Refused> refused = summary.refused;
    out.emplace_back(std::move(summary));
    report_refused(step, refused, blocks, now, out);
  }
}

// The factor that shards used for the block with the fewest samples. A shard that closed the step
// before it received the step's decision used the noise scale of the previous decision.
double StepReporter::rate_factor_of(const StepSummary& summary, RateRule rule) const {
  auto samples = static_cast<double>(summary.step.samples);
  if (settings_.asynchronous)
    samples /= std::max(summary.step.contributors, 1u);  // of one gradient
  return rate_factor(rule, samples, static_cast<double>(settings_.full_samples),
                     summary.noise_scale_at_open);
}

// Gradients arrived and none was usable. With partial pulls some blocks may still use a gradient.
bool StepReporter::is_empty(const StepRecord& step) const {
  if (step.contributors > 0 || step.refused == 0) return false;
  return !settings_.partial_pull ||
         std::none_of(step.block_counts.begin(), step.block_counts.end(),
                      [](const BlockCount& each) { return each.contributors > 0; });
}

// Reports a worker's 1st, 10th, 100th, ... outlier, so that a worker that sends one in every step
// does not flood the log.
void StepReporter::report_outliers(const StepSummary& summary, const BlockMap& blocks, Duration now,
                                   std::vector<RunRecord>& out) {
  for (const StepClosed::Outlier& each : summary.outliers) {
    const uint64_t times = ++outliers_[each.worker];
    if (!is_power_of_ten(times)) continue;
    out.emplace_back(EventRecord{.at = now,
                                 .step = summary.step.step,
                                 .peer = Peer{Role::kWorker, each.worker},
                                 .payload = event::Outlier{.ratio = each.ratio,
                                                           .tensor = blocks.tensor_of(each.block),
                                                           .used = each.used,
                                                           .times = times}});
  }
}

}  // namespace drover

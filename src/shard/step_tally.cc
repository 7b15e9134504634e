#include "shard/step_tally.h"

#include <algorithm>

namespace drover {
namespace {

// Openings of this many steps are remembered. The lateness of older pushes is not measured.
constexpr size_t kOpeningsKept = 64;

template <typename Number>
void lower(std::optional<Number>& least, Number value) {
  least = std::min(least.value_or(value), value);
}

}  // namespace

void StepTally::open(Step step, TimePoint now) {
  const auto place = opened_.try_emplace(step, now).first;
  if (step == step_) open_since_ = place->second;
}

Duration StepTally::since_opening(Step step, TimePoint now) const {
  const auto found = opened_.find(step);
  return found == opened_.end() ? Duration::zero() : now - found->second;
}

StepTally::Progress& StepTally::of(Step step) {
  const auto [place, is_new] = progress_.try_emplace(step);
  Progress& progress = place->second;
  if (is_new) {
    progress.blocks.resize(workers_, 0);
    progress.late.resize(workers_, 0);
    progress.run_time.resize(workers_, Duration::zero());
  }
  return progress;
}

bool StepTally::on_block(WorkerId worker, Step step, TimePoint now) {
  Progress& progress = of(step);
  ++progress.blocks[worker];
  progress.run_time[worker] = since_opening(step, now);
  if (step != step_ || progress.blocks[worker] != blocks_) return false;
  unreported_.push_back({worker, progress.run_time[worker], step});
  return true;
}

void StepTally::on_refused(WorkerId worker, Step step, BlockId block) {
  of(step).refused.push_back({worker, block});
}

void StepTally::on_outlier(WorkerId worker, Step step, BlockId block, double ratio, bool used) {
  StepClosed::Outlier& outlier = of(step).outliers[worker];
  outlier.worker = worker;
  ++outlier.blocks;
  outlier.used = used && (outlier.used || outlier.blocks == 1);
  if (ratio < outlier.ratio) return;
  outlier.ratio = ratio;
  outlier.block = block;
}

void StepTally::on_late(WorkerId worker, Step step, TimePoint now) {
  if (step >= step_) {
    Progress& progress = of(step);
    ++progress.late[worker];
    progress.run_time[worker] = since_opening(step, now);
    return;
  }
  const auto found = straggling_.find({step, worker});
  if (found == straggling_.end() || ++found->second < blocks_) return;
  straggling_.erase(found);
  if (opened_.contains(step)) late_[{step, worker}] = since_opening(step, now);
}

void StepTally::on_dropped(WorkerId worker, Step step) { ++of(step).late[worker]; }

void StepTally::forget(WorkerId worker) {
  std::erase_if(straggling_, [&](const auto& entry) { return entry.first.second == worker; });
  for (auto& [step, progress] : progress_) progress.late[worker] = 0;
}

void StepTally::on_block_closed(Step step, uint64_t samples, uint32_t gradients,
                                const NoiseEstimate& noise) {
  Progress& progress = of(step);
  lower(progress.samples_min, samples);
  ++progress.counts[gradients];
  progress.noise += noise;
}

void StepTally::on_round_closed(Step step, uint64_t samples, uint32_t gradients) {
  Progress& progress = of(step);
  lower(progress.samples_min, samples);
  lower(progress.gradients_min, gradients);
}

std::optional<Arrived> StepTally::take_unreported(uint32_t every) {
  if (every == 0 || unreported_.size() < every) return std::nullopt;
  return Arrived{.step = step_, .arrivals = std::exchange(unreported_, {})};
}

StepClosed StepTally::summary(TimePoint now) {
  const Progress& progress = of(step_);
  StepClosed closed;
  closed.step = step_;
  closed.elapsed = since_opening(step_, now);
  closed.undecided = progress.undecided;
  closed.closing = progress.undecided;  // a caller with a clock adds the time of the closing itself
  closed.refused = progress.refused;
  for (const auto& [worker, outlier] : progress.outliers) closed.outliers.push_back(outlier);
  for (const auto& [key, run_time] : late_)
    closed.late.push_back({key.second, run_time, key.first});
  late_.clear();
  closed.samples = progress.samples_min.value_or(0);
  closed.gradients = progress.gradients_min.value_or(0);
  closed.signal = progress.noise.signal;
  closed.noise = progress.noise.noise;
  for (const auto& [contributors, blocks] : progress.counts)
    closed.block_counts.push_back({contributors, blocks});
  return closed;
}

void StepTally::add_arrivals(const Membership& members, StepClosed& closed) {
  const Progress& progress = of(step_);
  for (WorkerId worker = 0; worker < workers_; ++worker) {
    if (progress.blocks[worker] == blocks_)
      closed.arrivals.push_back({worker, progress.run_time[worker], step_});
  }
  // Gradients of other workers are reported with a later step, when they are complete. Complete
  // ones (late for one block, or pushed before the worker was a member) are reported now, since
  // otherwise the coordinator would take the duration of the step as their run-time.
  for (const WorkerId worker : members.list()) {
    if (progress.blocks[worker] == blocks_) continue;
    const uint32_t seen = progress.blocks[worker] + progress.late[worker];
    if (seen < blocks_) {
      straggling_[{step_, worker}] = seen;
    } else {
      late_[{step_, worker}] = progress.run_time[worker];
      closed.late.push_back({worker, progress.run_time[worker], step_});
    }
  }
}

void StepTally::open_next(TimePoint now) {
  progress_.erase(step_);
  unreported_.clear();
  ++step_;
  open(step_, now);
  if (opened_.size() > kOpeningsKept) opened_.erase(opened_.begin());
  const Step oldest = opened_.begin()->first;
  while (!straggling_.empty() && straggling_.begin()->first.first < oldest)
    straggling_.erase(straggling_.begin());
}

}  // namespace drover

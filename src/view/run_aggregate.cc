#include "view/run_aggregate.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace drover {
namespace {

constexpr uint64_t kLearnedLeast = 10;
constexpr uint64_t kLearnedMost = 1000;

template <typename T>
void keep_last(std::deque<T>& values, size_t most, T value) {
  values.push_back(std::move(value));
  if (values.size() > most) values.pop_front();
}

}  // namespace

double WorkerTotals::inclusion() const {
  if (steps == 0) return kUnknown;
  return 1.0 - static_cast<double>(missed()) / static_cast<double>(steps);
}

double WorkerTotals::recurrence() const {
  if (after_miss == 0) return kUnknown;
  return static_cast<double>(missed_again) / static_cast<double>(after_miss);
}

bool WorkerTotals::median_exact() const {
  return bounds.up_to(median_run_time(), !times.is_exact()) == 0;
}

RunAggregate::RunAggregate(const HeatLayout& layout)
    : row_of_(layout.row_of), rows_(layout.rows.size()), workers_(layout.row_of.size()) {}

StepFacts RunAggregate::facts_of_next(const WalkedStep& step) {
  if (!step.decisions.empty()) {
    const DecisionRecord& last = step.decisions.back();
    in_force_.decision = DecisionRecord{.cutoff = last.cutoff, .alive = last.alive};
    in_force_.last_predicted_s = step.last_predicted_s;
  }
  for (const RecordedArrival& each : step.arrivals) {
    if (each.arrival.censored) continue;
    in_force_.longest_s = std::max(in_force_.longest_s, seconds(each.arrival.run_time));
  }
  // Predictions for workers that rarely arrive can be arbitrarily wrong, so they are limited to the
  // longest run-time recorded so far.
  const double predicted = std::isnan(in_force_.last_predicted_s)
                               ? kUnknown
                               : std::min(in_force_.last_predicted_s, in_force_.longest_s);
  return facts_of(step.step, step.arrivals, in_force_.decision ? &*in_force_.decision : nullptr,
                  predicted);
}

void RunAggregate::add(const WalkedStep& step) {
  const StepFacts facts = facts_of_next(step);
  add_record(step.step, facts);
  add_blocks(step.step);
  add_arrivals(step);
  steps_.at(step.step.step, {}).add(step.step, facts);
  if (facts.last_worker) ++workers_[*facts.last_worker].last;
}

void RunAggregate::add_record(const StepRecord& record, const StepFacts& facts) {
  gradients_.samples += record.samples;
  gradients_.used += record.contributors;
  gradients_.late += record.late;
  gradients_.refused += record.refused;
  gradients_.censored += facts.censored;

  if (step_times_.steps == 0) time_.first_start = record.at;
  time_.last_end = record.at + record.elapsed;
  time_.waited_s += facts.elapsed_s;
  time_.saved_s += facts.saved.at_least_s;
  time_.saved_about_s += facts.saved.about_s;
  time_.saved_predicted |= facts.saved.predicted;
  time_.aggregate_s += seconds(record.aggregate);

  ++step_times_.steps;
  step_times_.elapsed.add(record.elapsed);
  if (facts.computing.overhead) step_times_.overhead.add(*facts.computing.overhead);
  step_times_.closing.add(record.closing);
  step_times_.undecided_max = std::max(step_times_.undecided_max, record.undecided);
  step_times_.undecided_steps += record.undecided > Duration::zero() ? 1 : 0;
  step_times_.elapsed_counts.add(facts.elapsed_s);
  step_times_.deciding_counts.add(seconds(record.undecided));

  computing_.used += facts.computing.used;
  computing_.wasted += facts.computing.wasted;
  computing_.idle_s += facts.computing.idle_s;
  computing_.all_s += facts.computing.all_s;

  if (in_force_.decision) {
    const uint32_t cutoff = in_force_.decision->cutoff;
    const bool first = cutoff_.mean.count == 0;
    cutoff_.least = first ? cutoff : std::min(cutoff_.least, cutoff);
    cutoff_.most = std::max(cutoff_.most, cutoff);
    cutoff_.mean.add(cutoff);
  }

  newest_.learning_rate = record.learning_rate;
  if (record.contributors > 0) {  // otherwise the loss is unknown rather than NaN
    newest_.loss = record.loss;
    newest_.accuracy = record.accuracy;
  }
  keep_last(recent_, kRecentSteps,
            RecentStep{.step = record.step, .at_s = facts.at_s, .elapsed_s = facts.elapsed_s});
  if (record.contributors > 0 || !std::isnan(record.loss)) {
    keep_last(learned_, kLearnedMost,
              Learned{.loss = record.loss, .accuracy = record.accuracy, .samples = record.samples});
  }
}

void RunAggregate::add_blocks(const StepRecord& record) {
  blocks_.fresh.add(record.fresh_mean);
  if (!std::isnan(record.fresh_min)) {
    blocks_.fresh_min = std::min(blocks_.fresh_min, record.fresh_min);
    blocks_.stale_steps += record.fresh_min < 1.0 ? 1 : 0;
  }
  blocks_.staleness_max = std::max(blocks_.staleness_max, record.staleness_max);
  if (record.block_counts.empty()) return;
  const bool first = blocks_.blocks == 0;
  uint32_t least = record.block_counts.front().contributors;
  uint32_t most = least;
  for (const BlockCount& each : record.block_counts) {
    least = std::min(least, each.contributors);
    most = std::max(most, each.contributors);
    blocks_.blocks += each.blocks;
    blocks_.gradients += uint64_t{each.contributors} * each.blocks;
  }
  blocks_.uneven_steps += least < most ? 1 : 0;
  blocks_.contributors_min = first ? least : std::min(blocks_.contributors_min, least);
  blocks_.contributors_max = std::max(blocks_.contributors_max, most);
}

void RunAggregate::add_arrivals(const WalkedStep& step) {
  HeatColumn& column = heat_.at(step.step.step, {});
  if (column.cells.empty()) {
    column.first = step.step.step;
    column.cells.resize(rows_);
  }
  for (const RecordedArrival& each : step.arrivals) {
    const ArrivalRecord& arrival = each.arrival;
    DROVER_CHECK(arrival.worker < workers_.size());
    const bool missed = !in_time(each);
    HeatColumn::Cell& cell = column.cells[row_of_[arrival.worker]];
    cell.sum_s += seconds(arrival.run_time);
    ++cell.count;
    cell.missed += missed ? 1 : 0;
    WorkerTotals& worker = workers_[arrival.worker];
    ++worker.steps;
    worker.late += each.late ? 1 : 0;
    worker.censored += arrival.censored ? 1 : 0;
    worker.after_miss += worker.missed_before ? 1 : 0;
    worker.missed_again += worker.missed_before && missed ? 1 : 0;
    worker.missed_before = missed;
    worker.times.add(arrival.run_time);
    if (arrival.censored) worker.bounds.add(arrival.run_time);
  }
}

RecentLearning RunAggregate::recent_learning() const {
  RecentLearning recent;
  recent.steps =
      std::min(step_count(), std::clamp(step_count() / 100, kLearnedLeast, kLearnedMost));
  const size_t shown = std::min<size_t>(learned_.size(), recent.steps);
  const auto mean_of = [&](double Learned::*value, bool skips_nan) {
    Mean weighted;
    Mean plain;
    double weight = 0.0;
    for (auto each = learned_.end() - static_cast<std::ptrdiff_t>(shown); each != learned_.end();
         ++each) {
      if (std::isnan((*each).*value)) {
        if (skips_nan) continue;
        return kUnknown;
      }
      const auto samples = static_cast<double>(each->samples);
      weighted.add((*each).*value * samples);
      plain.add((*each).*value);
      weight += samples;
    }
    return weight > 0.0 ? weighted.sum / weight : plain.value();
  };
  recent.loss = mean_of(&Learned::loss, false);
  recent.accuracy = mean_of(&Learned::accuracy, true);
  return recent;
}

}  // namespace drover

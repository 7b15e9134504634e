#include "view/run_sums.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "core/check.h"

namespace drover {

void Mean::add(double value) {
  if (std::isnan(value)) return;
  sum += value;
  ++count;
}

void Mean::merge(const Mean& other) {
  sum += other.sum;
  count += other.count;
}

void StepBucket::add(const StepFacts& facts) {
  const StepRecord& record = facts.record;
  if (steps == 0) {
    first = record.step;
    at_s = facts.at_s;
    elapsed_min_s = elapsed_max_s = facts.elapsed_s;
  }
  ++steps;
  elapsed_min_s = std::min(elapsed_min_s, facts.elapsed_s);
  elapsed_max_s = std::max(elapsed_max_s, facts.elapsed_s);
  elapsed.add(facts.elapsed_s);
  cutoff.add(facts.cutoff);
  alive.add(facts.alive);
  contributors.add(record.contributors);
  oracle.add(facts.oracle);
  loss.add(record.loss);
  accuracy.add(record.accuracy);
  samples.add(static_cast<double>(record.samples));
  learning_rate.add(record.learning_rate);
  noise_scale.add(record.noise_scale);
  fresh.add(record.fresh_mean);
  computing.add(facts.split.computing_s);
  moving.add(facts.split.moving_s);
  waiting.add(facts.split.waiting_s);
  aggregating.add(facts.split.aggregating_s);
  deciding.add(facts.split.deciding_s);
  // Of a step that used nobody's whole gradient the loss is only unknown.
  diverged += std::isnan(record.loss) && record.contributors > 0 ? 1 : 0;
  late += record.late;
  refused += record.refused;
  saved_s += facts.saved_s;
  saved_about_s += facts.saved_about_s;
}

void StepBucket::merge(const StepBucket& later) {
  if (later.steps == 0) return;
  if (steps == 0) {
    *this = later;
    return;
  }
  steps += later.steps;
  elapsed_min_s = std::min(elapsed_min_s, later.elapsed_min_s);
  elapsed_max_s = std::max(elapsed_max_s, later.elapsed_max_s);
  for (Mean StepBucket::*mean :
       {&StepBucket::elapsed, &StepBucket::cutoff, &StepBucket::alive, &StepBucket::contributors,
        &StepBucket::oracle, &StepBucket::loss, &StepBucket::accuracy, &StepBucket::samples,
        &StepBucket::learning_rate, &StepBucket::noise_scale, &StepBucket::fresh,
        &StepBucket::computing, &StepBucket::moving, &StepBucket::waiting, &StepBucket::aggregating,
        &StepBucket::deciding}) {
    (this->*mean).merge(later.*mean);
  }
  diverged += later.diverged;
  late += later.late;
  refused += later.refused;
  saved_s += later.saved_s;
  saved_about_s += later.saved_about_s;
}

void HeatColumn::merge(const HeatColumn& later) {
  if (later.cells.empty()) return;
  if (cells.empty()) {
    *this = later;
    return;
  }
  for (size_t row = 0; row < cells.size(); ++row) {
    cells[row].sum_s += later.cells[row].sum_s;
    cells[row].count += later.cells[row].count;
    cells[row].missed += later.cells[row].missed;
  }
}

HeatLayout heat_layout(const std::vector<std::string>& nodes) {
  // Nodes in the order of their first workers, not of their names: node-10 is not before node-2.
  std::map<std::string, size_t> place_of;
  std::vector<std::vector<WorkerId>> by_node;
  for (WorkerId worker = 0; worker < nodes.size(); ++worker) {
    const auto [place, is_new] = place_of.emplace(nodes[worker], by_node.size());
    if (is_new) by_node.emplace_back();
    by_node[place->second].push_back(worker);
  }
  // More nodes than rows: then nodes share rows, in the order of workers.
  const bool by_themselves = by_node.size() <= kHeatRows;
  if (!by_themselves) {
    by_node.assign(1, std::vector<WorkerId>(nodes.size()));
    std::iota(by_node.front().begin(), by_node.front().end(), WorkerId{0});
  }
  const auto rows_with = [&by_node](size_t share) {
    size_t rows = 0;
    for (const auto& workers : by_node) rows += (workers.size() + share - 1) / share;
    return rows;
  };
  size_t share = 1;
  while (rows_with(share) > kHeatRows) ++share;
  HeatLayout layout;
  layout.row_of.resize(nodes.size());
  for (const auto& workers : by_node) {
    for (size_t i = 0; i < workers.size(); ++i) {
      if (i % share == 0)
        layout.rows.push_back(
            {.first = workers[i], .node = by_themselves ? nodes[workers[i]] : ""});
      layout.rows.back().last = workers[i];
      ++layout.rows.back().count;
      layout.row_of[workers[i]] = static_cast<uint32_t>(layout.rows.size() - 1);
    }
  }
  return layout;
}

RunSums::RunSums(const HeatLayout& layout)
    : row_of_(layout.row_of), rows_(layout.rows.size()), workers_(layout.row_of.size()) {}

void RunSums::add(const StepFacts& facts, std::span<const RecordedArrival> arrivals) {
  const Step step = facts.record.step;
  steps_.at(step, {}).add(facts);
  HeatColumn& column = heat_.at(step, {});
  if (column.cells.empty()) {
    column.first = step;
    column.cells.resize(rows_);
  }
  for (const RecordedArrival& each : arrivals) {
    const ArrivalRecord& arrival = each.arrival;
    DROVER_CHECK(arrival.worker < workers_.size());
    const bool missed = !in_time(each);
    HeatColumn::Cell& cell = column.cells[row_of_[arrival.worker]];
    cell.sum_s += seconds(arrival.run_time);
    ++cell.count;
    cell.missed += missed ? 1 : 0;
    WorkerSums& worker = workers_[arrival.worker];
    ++worker.steps;
    worker.late += each.late ? 1 : 0;
    worker.censored += arrival.censored ? 1 : 0;
    worker.after_miss += worker.missed_before ? 1 : 0;
    worker.missed_again += worker.missed_before && missed ? 1 : 0;
    worker.missed_before = missed;
    worker.times.add(arrival.run_time);
    if (arrival.censored) worker.bounds.add(arrival.run_time);
  }
  if (facts.record.last_worker < workers_.size()) ++workers_[facts.record.last_worker].last;
  samples += facts.record.samples;
  used += facts.record.contributors;
  late += facts.record.late;
  refused += facts.record.refused;
  censored += facts.censored;
  waited_s += facts.elapsed_s;
  saved_s += facts.saved_s;
  saved_about_s += facts.saved_about_s;
  saved_foretold |= facts.saved_foretold;
  elapsed_s_.push_back(facts.elapsed_s);
  recent_.push_back(facts);
  if (recent_.size() > kRecentSteps) recent_.pop_front();
}

}  // namespace drover

// What an experiment has found: for each place, its variants compared by the time they take to the
// target.
//
// Only cells that reached the target have a time to it. The others are counted, and never averaged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/cell_measures.h"
#include "experiment/experiment_file.h"
#include "experiment/experiment_plan.h"
#include "experiment/statistics.h"

namespace drover {

struct CellResult {
  size_t place = 0;
  size_t variant = 0;
  uint64_t seed = 0;
  CellMeasures measures;
};

struct MeanAndRange {
  double mean = 0.0;
  double best = 0.0;
  double worst = 0.0;
  std::optional<Interval> interval;  // of the mean, 95 %
};

struct VariantSummary {
  uint32_t cells = 0;
  uint32_t reached = 0;
  uint32_t failed = 0;                     // and not reached before
  std::optional<MeanAndRange> seconds;     // of those that reached the target
  std::optional<double> steps;             // likewise
  std::optional<double> gradients;         // likewise
  std::optional<double> ratio;             // of seconds to the first variant's, with equal seeds
  std::optional<Interval> ratio_interval;  // 95 %
  uint32_t pairs = 0;                      // seeds with which both reached it
  std::optional<double> contributors;      // of all that did not fail
  std::optional<double> idle_share;        // likewise, where it is known
  std::vector<std::string> notes;          // on each cell that has no time: what became of it
};

struct PlaceSummary {
  std::vector<VariantSummary> variants;  // as in the file
};

// By place, as in the file.
std::vector<PlaceSummary> summarize(const ExperimentFile& file,
                                    const std::vector<CellResult>& results);

}  // namespace drover

// The results of an experiment: for each place, a comparison of its variants by time to the target.
//
// Only cells that reached the target have a time. The others are counted but never averaged.
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
  uint32_t failed = 0;                     // failed before they reached the target
  std::optional<MeanAndRange> seconds;     // of cells that reached the target
  std::optional<double> steps;             // likewise
  std::optional<double> gradients;         // likewise
  std::optional<double> ratio;             // mean ratio to the first variant's time, by seed
  std::optional<Interval> ratio_interval;  // 95 %
  uint32_t pairs = 0;                      // seeds for which both reached the target
  std::optional<double> contributors;      // per step, of all cells that did not fail
  std::optional<double> idle_share;        // likewise, of cells for which it is known
  std::vector<std::string> notes;          // one for each cell without a time: the reason
};

struct PlaceSummary {
  std::vector<VariantSummary> variants;  // in the order of the file
};

// One summary for each place, in the order of the file.
std::vector<PlaceSummary> summarize(const ExperimentFile& file,
                                    const std::vector<CellResult>& results);

}  // namespace drover

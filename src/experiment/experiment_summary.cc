#include "experiment/experiment_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace drover {
namespace {

std::optional<double> mean_or_none(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(mean_of(values));
}

std::string note_on(const ExperimentFile& file, const CellResult& result) {
  const CellMeasures& cell = result.measures;
  const std::string cell_name =
      fmt::format("{}, seed {}", file.variants[result.variant].name, result.seed);
  if (cell.failed) return fmt::format("{}: failed: {}", cell_name, cell.reason);
  const std::string best =
      cell.best ? fmt::format("; best {} {:.4g}", name_of(file.target.kind), *cell.best) : "";
  return fmt::format("{}: not reached in {} steps{}", cell_name, cell.steps, best);
}

VariantSummary summarize_variant(const ExperimentFile& file,
                                 const std::vector<const CellResult*>& results,
                                 const std::map<uint64_t, double>& first) {
  VariantSummary summary;
  std::vector<double> seconds;
  std::vector<double> steps;
  std::vector<double> gradients;
  std::vector<double> ratios;
  std::vector<double> contributors;
  std::vector<double> idle;
  for (const CellResult* result : results) {
    const CellMeasures& cell = result->measures;
    ++summary.cells;
    if (!cell.failed || cell.reached) {
      contributors.push_back(cell.contributors_mean);
      if (cell.idle_share) idle.push_back(*cell.idle_share);
    }
    if (!cell.reached) {
      summary.failed += cell.failed ? 1 : 0;
      summary.notes.push_back(note_on(file, *result));
      continue;
    }
    ++summary.reached;
    seconds.push_back(cell.seconds);
    steps.push_back(static_cast<double>(cell.steps));
    gradients.push_back(static_cast<double>(cell.gradients));
    const auto pair = first.find(result->seed);
    if (pair != first.end() && pair->second > 0.0) ratios.push_back(cell.seconds / pair->second);
  }
  if (!seconds.empty()) {
    const auto [best, worst] = std::minmax_element(seconds.begin(), seconds.end());
    summary.seconds = {mean_of(seconds), *best, *worst, bootstrap_mean(seconds)};
  }
  summary.steps = mean_or_none(steps);
  summary.gradients = mean_or_none(gradients);
  summary.ratio = mean_or_none(ratios);
  summary.ratio_interval = bootstrap_mean(ratios);
  summary.pairs = static_cast<uint32_t>(ratios.size());
  summary.contributors = mean_or_none(contributors);
  summary.idle_share = mean_or_none(idle);
  return summary;
}

}  // namespace

std::vector<PlaceSummary> summarize(const ExperimentFile& file,
                                    const std::vector<CellResult>& results) {
  std::vector<PlaceSummary> places(file.places.size());
  for (size_t place = 0; place < file.places.size(); ++place) {
    std::vector<std::vector<const CellResult*>> by_variant(file.variants.size());
    std::map<uint64_t, double> first;  // seconds of the first variant, by seed
    for (const CellResult& result : results) {
      if (result.place != place) continue;
      by_variant[result.variant].push_back(&result);
      if (result.variant == 0 && result.measures.reached)
        first[result.seed] = result.measures.seconds;
    }
    for (const auto& cells : by_variant)
      places[place].variants.push_back(summarize_variant(file, cells, first));
  }
  return places;
}

}  // namespace drover

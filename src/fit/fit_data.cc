#include "fit/fit_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "core/check.h"
#include "forecast/learned/worker_features.h"

namespace drover {
namespace {

// The minimum number of steps to learn from. The shared network learns from every worker of a step;
// for the others, each output learns only from its own worker.
size_t least_targets(Emission emission) { return emission == Emission::kShared ? 4 : 20; }
constexpr size_t kLeastHeldOut = 2;
// Smaller differences of log run-times count as zero.
constexpr double kLeastScale = 1e-4;
// WorkerFeatures needs two steps to estimate the spread of run-times.
constexpr size_t kFeaturesBegin = 2;

void add_shared(const History& history, FitData& data) {
  const size_t cells = data.steps * data.workers();
  data.inputs_a_cell = kFeatureCount + 2;
  data.inputs.reserve(cells * data.inputs_a_cell);
  data.anchors.resize(cells * kAnchorCount);
  WorkerFeatures features;
  size_t cell = 0;
  for (size_t t = 0; t < data.steps; ++t) {
    const std::span<const PastTime> row = history.row(t);
    for (WorkerId worker = 0; worker < row.size(); ++worker, ++cell) {
      const WorkerView view = features.view(worker);
      const PastTime& time = row[worker];
      const float origin = view.anchors[kMidAnchor];
      const auto measured = [&](float value) { return (value - origin) / view.scale; };
      const bool cut_short = time.known == Known::kLonger;
      const bool absent = time.known == Known::kNothing;
      data.inputs.insert(data.inputs.end(), view.features.begin(), view.features.end());
      data.inputs.push_back(absent ? 0.0F : squash(measured(time.log_time)));
      data.inputs.push_back(cut_short ? 1.0F : 0.0F);
      for (size_t a = 0; a < kAnchorCount; ++a) {
        data.anchors[a * cells + cell] = measured(view.anchors[a]);
      }
      if (!absent) data.target[cell] = measured(cut_short ? time.bound : time.log_time);
      data.log_unit[cell] = std::log(view.scale);
    }
    features.learn(history.step(t), row);
  }
}

// A row in the order of kWorkers or kSorted. For kSorted, censored run-times come last, because
// only a lower bound is known. If not all workers took part, the last ranks are empty.
std::vector<PastTime> seen_row(const History& history, size_t t, Emission emission) {
  const std::span<const PastTime> row = history.row(t);
  std::vector<PastTime> seen(row.begin(), row.end());
  if (emission != Emission::kSorted) return seen;
  const auto place = [](const PastTime& time) {
    return time.known == Known::kArrived ? 0 : time.known == Known::kLonger ? 1 : 2;
  };
  std::sort(seen.begin(), seen.end(), [&](const PastTime& left, const PastTime& right) {
    if (place(left) != place(right)) return place(left) < place(right);
    return left.log_time != right.log_time ? left.log_time < right.log_time
                                           : left.bound < right.bound;
  });
  return seen;
}

// normal_mean is the mean of each worker or rank over the training steps, normal_scale the
// deviation from it.
void measure_normal(const std::vector<std::vector<PastTime>>& rows, FitData& data) {
  std::vector<double> sums(data.workers());
  std::vector<double> counts(data.workers());
  for (size_t t = 0; t < data.held_out; ++t) {
    for (size_t i = 0; i < data.workers(); ++i) {
      if (rows[t][i].known == Known::kNothing) continue;
      sums[i] += rows[t][i].log_time;
      counts[i] += 1.0;
    }
  }
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double overall_mean =
      all > 0.0 ? std::accumulate(sums.begin(), sums.end(), 0.0) / all : 0.0;
  for (size_t i = 0; i < data.workers(); ++i) {
    data.normal_mean.push_back(
        static_cast<float>(counts[i] > 0.0 ? sums[i] / counts[i] : overall_mean));
  }
  double squares = 0.0;
  for (size_t t = 0; t < data.held_out; ++t) {
    for (size_t i = 0; i < data.workers(); ++i) {
      if (rows[t][i].known == Known::kNothing) continue;
      const double rest = rows[t][i].log_time - data.normal_mean[i];
      squares += rest * rest;
    }
  }
  data.normal_scale =
      static_cast<float>(std::max(kLeastScale, std::sqrt(squares / std::max(1.0, all))));
}

void add_published(const History& history, FitData& data) {
  std::vector<std::vector<PastTime>> rows;
  for (size_t t = 0; t < data.steps; ++t) {
    rows.push_back(seen_row(history, t, data.shape.emission));
  }
  measure_normal(rows, data);
  data.inputs_a_cell = 1;
  data.inputs.assign(data.steps * data.workers(), 0.0F);
  std::fill(data.log_unit.begin(), data.log_unit.end(), std::log(data.normal_scale));
  size_t cell = 0;
  for (const std::vector<PastTime>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i, ++cell) {
      const auto measured = [&](float value) {
        return (value - data.normal_mean[i]) / data.normal_scale;
      };
      // The order within a row may differ from the history's.
      data.took_part[cell] = row[i].known == Known::kNothing ? 0.0F : 1.0F;
      data.cut_short[cell] = row[i].known == Known::kLonger ? 1.0F : 0.0F;
      if (row[i].known == Known::kNothing) continue;
      data.inputs[cell] = measured(row[i].log_time);
      data.target[cell] = measured(row[i].known == Known::kLonger ? row[i].bound : row[i].log_time);
    }
  }
}

size_t first_step(Emission emission) { return emission == Emission::kShared ? kFeaturesBegin : 0; }

// The first held-out step.
size_t held_out_from(size_t steps, double share) {
  if (share <= 0.0) return steps;
  const auto judging = static_cast<size_t>(std::llround(share * static_cast<double>(steps)));
  return steps - std::min(steps, std::max(kLeastHeldOut, judging));
}

// Whether this number of steps is enough for a fit.
bool enough(size_t steps, const ModelShape& shape, double share) {
  const size_t before = first_step(shape.emission) + shape.window;
  return held_out_from(steps, share) >= before + least_targets(shape.emission);
}

Error too_few_steps(const FitData& data, double share) {
  std::string message = fmt::format(
      "cannot fit a model to {} steps: its window is {} steps, {} are held out for evaluation, "
      "and at least {} are needed for training.",
      data.steps, data.shape.window, data.steps - data.held_out,
      least_targets(data.shape.emission));
  const auto needed = [&](const ModelShape& shape) {
    size_t steps = data.steps;
    while (!enough(steps, shape, share)) ++steps;
    return steps;
  };
  message += fmt::format(" Record {} steps or more", needed(data.shape));
  if (data.shape.emission != Emission::kShared) {
    const ModelShape shared = default_shape(Emission::kShared, data.shape.workers);
    message += enough(data.steps, shared, share)
                   ? ", or use --emission shared, for which these steps are enough"
                   : fmt::format(", or {} with --emission shared", needed(shared));
  }
  return invalid_input(message + ".");
}

}  // namespace

Result<FitData> prepare_data(const FitRequest& request) {
  DROVER_CHECK(request.history != nullptr);
  const History& history = *request.history;
  if (history.workers() == 0) {
    return invalid_input("cannot fit a model to a record without workers");
  }
  FitData data;
  data.shape = request.shape;
  data.shape.workers = history.workers();
  if (const Status sound = check_shape(data.shape); !sound.ok()) return sound.error();
  data.steps = history.steps();
  data.first = first_step(data.shape.emission);
  // With enough steps, some are always left for training.
  const double share = std::clamp(request.settings.held_out, 0.0, 0.9);
  data.held_out = held_out_from(data.steps, share);
  if (!enough(data.steps, data.shape, share)) return too_few_steps(data, share);

  const size_t cells = data.steps * data.workers();
  data.target.assign(cells, 0.0F);
  data.log_unit.assign(cells, 0.0F);
  data.took_part.assign(cells, 0.0F);
  data.cut_short.assign(cells, 0.0F);
  double known = 0.0;
  double cut_short = 0.0;
  for (size_t t = 0, cell = 0; t < data.steps; ++t) {
    for (const PastTime& time : history.row(t)) {
      data.took_part[cell] = time.known == Known::kNothing ? 0.0F : 1.0F;
      data.cut_short[cell] = time.known == Known::kLonger ? 1.0F : 0.0F;
      known += data.took_part[cell];
      cut_short += data.cut_short[cell++];
    }
  }
  data.cut_short_share = known > 0.0 ? cut_short / known : 0.0;
  if (data.shape.emission == Emission::kShared) {
    add_shared(history, data);
  } else {
    add_published(history, data);
  }
  return data;
}

}  // namespace drover

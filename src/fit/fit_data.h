// FitData: the training data of a model, computed from a history: numbers per worker and step,
// relative to the origins and units of the model.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "forecast/learned/fitting.h"

namespace drover {

// A cell is a worker in a step, or for kSorted a rank in a step; cells are ordered by step.
struct FitData {
  ModelShape shape;  // the requested one, with the history's number of workers
  size_t steps = 0;
  size_t first = 0;     // first usable step; earlier ones have no origin yet
  size_t held_out = 0;  // steps from here on only evaluate the fit; `steps` if none

  // The encoder's input for a cell: features, surprise and whether it is censored (kShared), or
  // the run-time (target, imputed if censored; 0 for a worker that took no part).
  uint32_t inputs_a_cell = 0;
  std::vector<float> inputs;
  // kShared only. All values of the first anchor, then of the next.
  std::vector<float> anchors;

  // A log time x is measured as (x - origin) / unit. kShared: a worker's kMidAnchor and scale
  // before the step; else normal_mean and normal_scale.
  std::vector<float> target;  // the run-time, or its lower bound
  std::vector<float> log_unit;
  std::vector<float> took_part;  // 1 or 0
  std::vector<float> cut_short;  // 1: `target` is a bound

  // kWorkers and kSorted only; part of the model.
  std::vector<float> normal_mean;
  float normal_scale = 1.0F;

  double cut_short_share = 0.0;

  size_t workers() const { return shape.workers; }
  // The first step with a full window before it.
  size_t first_target() const { return first + shape.window; }
};

// Fails if the shape is invalid, or if there are too few steps for a fit.
Result<FitData> prepare_data(const FitRequest& request);

}  // namespace drover

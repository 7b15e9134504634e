// FitData: a history as the numbers that a model is trained on, one per worker and step, relative
// to where the model measures from.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "forecast/learned/fitting.h"

namespace drover {

// A cell is a worker in a step, or for kSorted a rank in a step; cells lie step by step.
struct FitData {
  ModelShape shape;  // the one asked for, with as many workers as there are
  size_t steps = 0;
  size_t first = 0;     // before it there is nothing to measure from
  size_t held_out = 0;  // steps from here on only judge; `steps` if none do

  // What the encoder reads of a cell: features, surprise and whether it was cut short (kShared), or
  // the run-time (target, imputed where it was cut short; 0 for who took no part).
  uint32_t inputs_a_cell = 0;
  std::vector<float> inputs;
  // kShared alone. All of one anchor, then all of the next.
  std::vector<float> anchors;

  // A log time x is measured as (x - origin) / unit. kShared: a worker's kMidAnchor and scale
  // before the step; else normal_mean and normal_scale.
  std::vector<float> target;  // the run-time, or what it is longer than
  std::vector<float> log_unit;
  std::vector<float> took_part;  // 1 or 0
  std::vector<float> cut_short;  // 1: `target` is a bound

  // Of kWorkers and kSorted, for the model.
  std::vector<float> normal_mean;
  float normal_scale = 1.0F;

  double cut_short_share = 0.0;

  size_t workers() const { return shape.workers; }
  // Steps that can be forecast from a whole window before them.
  size_t first_target() const { return first + shape.window; }
};

// Refused, with the reason: a shape that makes no sense, and too few steps to learn from.
Result<FitData> prepare_data(const FitRequest& request);

}  // namespace drover

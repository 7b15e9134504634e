// The report of `drover fit` on a fitted model and on a model file: text for people, a line of JSON
// for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forecast/learned/calibration.h"
#include "forecast/learned/fitting.h"
#include "forecast/learned/model_weights.h"

namespace drover {

// A forecaster evaluated on the held-out steps.
struct JudgedForecaster {
  std::string name;    // "shared", "ecdf"
  bool model = false;  // fitted, rather than a simple statistic
  bool kept = false;   // the saved model
  ForecasterCalibration calibration;
};

struct FitSummary {
  std::string model_file;
  std::vector<std::string> sources;
  ModelShape shape;
  FitNote note;
  uint64_t held_out = 0;  // steps
  uint32_t iterations = 0;
  uint32_t iterations_limit = 0;
  double seconds = 0.0;
  bool interrupted = false;
  std::vector<FitPoint> curve;           // not empty
  std::vector<JudgedForecaster> judged;  // models first
};

// The point of the curve whose parameters were kept: the one with the note's held-out ELBO, or else
// the last.
FitPoint kept_point(const FitSummary& summary);

std::string to_text(const FitSummary& summary);
// One JSON object in one line, without '\n'. Keys are stable; later versions may add some.
std::string to_json_line(const FitSummary& summary);

// A description of a model file.
std::string model_text(const std::string& path, const ModelWeights& weights);
std::string model_json_line(const std::string& path, const ModelWeights& weights);

}  // namespace drover

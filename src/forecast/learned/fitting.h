// Fitting: the interface to model fitting. Decisions never wait for a fit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/result.h"
#include "forecast/learned/history.h"
#include "forecast/learned/model_weights.h"

namespace drover {

// Parameters of a fit. docs/model.md explains the defaults.
struct FitSettings {
  uint64_t seed = 1;
  uint32_t iterations = 400;      // at most
  uint32_t batch = 32;            // windows per iteration
  uint32_t workers_a_batch = 64;  // kShared: workers per iteration, drawn at random
  double learning_rate = 3e-3;    // of Adam; decays to a tenth along a cosine
  double kl_warmup = 0.25;    // share of the iterations in which the KL term grows to its weight
  double foresight = 1.0;     // weight of the likelihood under z drawn from the transition
  double held_out = 0.2;      // share of the steps, the newest, that only evaluate the fit
  uint32_t judge_every = 20;  // iterations between evaluations
  uint32_t patience = 5;      // evaluations without improvement before the fit stops
};

struct FitPoint {
  uint32_t iteration = 0;
  double train_elbo = 0.0;     // per run-time
  double held_out_elbo = 0.0;  // NaN: no steps were held out
};

struct FitRequest {
  std::shared_ptr<const History> history;
  ModelShape shape;
  FitSettings settings;
  std::shared_ptr<const ModelWeights> start;  // null: from scratch
};

struct FitOutcome {
  ModelWeights weights;  // those with the best score on the held-out steps
  std::vector<FitPoint> curve;
};

// Called in each iteration, so that the caller can pace or stop a fit. `judged` is null unless this
// iteration evaluated the fit. Returns false to stop with the best weights so far.
using FitListener = std::function<bool(uint32_t iteration, const FitPoint* judged)>;
using FitFunction = std::function<Result<FitOutcome>(const FitRequest&, const FitListener&)>;

// Fits models in the background of a run, one at a time.
class Fitter {
 public:
  virtual ~Fitter() = default;
  // REQUIRES: !busy().
  virtual void begin(Step now, FitRequest request) = 0;
  virtual bool busy() const = 0;
  // Returns the outcome of a finished fit once.
  virtual std::optional<Result<FitOutcome>> poll(Step now) = 0;
};

}  // namespace drover

// Fitting: what is asked of whoever can fit a model, and how the answer comes back. Deciding never
// waits for it.
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

// How a model is fitted; docs/model.md tells how the defaults were found.
struct FitSettings {
  uint64_t seed = 1;
  uint32_t iterations = 400;      // at most
  uint32_t batch = 32;            // windows per iteration
  uint32_t workers_a_batch = 64;  // kShared: so many of the workers, drawn anew each time
  double learning_rate = 3e-3;    // Adam's, falling to a tenth along a cosine
  double kl_warmup = 0.25;    // share of the iterations in which the KL term grows to its weight
  double foresight = 1.0;     // weight of the likelihood under z drawn from the transition
  double held_out = 0.2;      // share of the steps, the newest, that only judge
  uint32_t judge_every = 20;  // iterations
  uint32_t patience = 5;      // judgements without a better one before it stops
};

struct FitPoint {
  uint32_t iteration = 0;
  double train_elbo = 0.0;     // per run-time
  double held_out_elbo = 0.0;  // NaN: nothing was held out
};

struct FitRequest {
  std::shared_ptr<const History> history;
  ModelShape shape;
  FitSettings settings;
  std::shared_ptr<const ModelWeights> start;  // null: from scratch
};

struct FitOutcome {
  ModelWeights weights;  // the best by how well it forecast the held-out steps
  std::vector<FitPoint> curve;
};

// Called every iteration, so that a fit can pace itself; `judged` is null between judgements.
// False: stop with the best so far.
using FitListener = std::function<bool(uint32_t iteration, const FitPoint* judged)>;
using FitFunction = std::function<Result<FitOutcome>(const FitRequest&, const FitListener&)>;

// Fits beside a run. One fit at a time.
class Fitter {
 public:
  virtual ~Fitter() = default;
  // REQUIRES: !busy().
  virtual void begin(Step now, FitRequest request) = 0;
  virtual bool busy() const = 0;
  // The answer, once, when it is there.
  virtual std::optional<Result<FitOutcome>> poll(Step now) = 0;
};

}  // namespace drover

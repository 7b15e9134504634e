// The catalogue of policies by name, for --policy and `drover policies`.
//
// Syntax: NAME or NAME:OPTION:OPTION... An option is KEY=VALUE, or the bare value for a policy's
// main option: static:0.943, static:k=100, mad:k=3:window=20. There are no commas, so commas can
// separate policies in a list.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "forecast/learned/fitting.h"
#include "policy/objective.h"
#include "policy/policy.h"

namespace drover {

// Returns the future run-times of a step, in the order of `alive`. Only a replay or a simulation
// can provide it.
using Foresight = std::function<std::vector<double>(Step, std::span<const WorkerId> alive)>;

// Makes a model fitter for one policy.
using FitterMaker = std::function<std::unique_ptr<Fitter>()>;

struct PolicySettings {
  Objective objective = Objective::kThroughput;
  Step warmup = 20;  // first steps, in which policies that learn wait for all workers
  uint64_t seed = 1;
  bool live = false;    // policies with a forecast decide again inside the step
  Foresight foresight;  // empty: future run-times are not available
  FitterMaker fitter;   // empty: models cannot be fitted
};

// Asynchronous training (async, ssp): how far a worker may run ahead of the others.
struct Asynchronous {
  std::optional<uint64_t> staleness;  // steps ahead of the slowest worker; absent: no limit
};

struct PolicyInfo {
  std::string_view name;
  std::string_view summary;  // one line
  std::string_view options;  // "" or "0.943 (share) or k=100 (count)"
};
// From simple to advanced, as `drover policies` lists them.
std::span<const PolicyInfo> policies();

// Fails if `text` is not valid, and suggests the most similar name. Also fails for a policy that
// needs foresight where there is none, and for asynchronous ones (async, ssp), which have no
// cutoff.
Result<std::unique_ptr<Policy>> make_policy(std::string_view text, const PolicySettings& settings);

// The staleness limit of an asynchronous policy (async, ssp). Nothing for other policies. An error
// if `text` is not valid.
Result<std::optional<Asynchronous>> asynchronous_of(std::string_view text);

}  // namespace drover

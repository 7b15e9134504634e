// The policies there are, by name: what --policy takes, what `drover policies` lists.
//
// A policy is written NAME or NAME:OPTION:OPTION..., an option KEY=VALUE or, for the one that
// matters most, the bare value: static:0.943, static:k=100, mad:k=3:window=20. No commas, so that
// several policies can be written in a row.
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

// Every alive worker's run-time of a step that has not been run yet, in the order of `alive`; only
// a replay or a simulation has it.
using Foresight = std::function<std::vector<double>(Step, std::span<const WorkerId> alive)>;

// Somebody to fit models with, for one policy.
using FitterMaker = std::function<std::unique_ptr<Fitter>()>;

struct PolicySettings {
  Objective objective = Objective::kThroughput;
  Step warmup = 20;  // steps in which policies that learn wait for everybody
  uint64_t seed = 1;
  bool live = false;    // policies with a forecast decide again inside the step
  Foresight foresight;  // empty: there is none
  FitterMaker fitter;   // empty: no model can be fitted
};

// How far workers may run ahead of each other in policies that do not wait for a step together.
struct FreeRunning {
  std::optional<uint64_t> staleness;  // steps between the fastest and the slowest; absent: any
};

struct PolicyInfo {
  std::string_view name;
  std::string_view summary;  // one line
  std::string_view options;  // "" or "0.943 (share) or k=100 (count)"
};
// In the order in which people want to read them.
std::span<const PolicyInfo> policies();

// A wrong text is answered with what is wrong and the nearest right name. Policies that need
// foresight, or that have no cutoff (async, ssp), are refused with the reason.
Result<std::unique_ptr<Policy>> make_policy(std::string_view text, const PolicySettings& settings);

// Whether `text` names async or ssp, which have no cutoff, and how far apart their workers may get.
// An error if the text is wrong.
Result<std::optional<FreeRunning>> free_running_of(std::string_view text);

}  // namespace drover

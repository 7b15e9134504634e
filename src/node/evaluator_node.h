// The evaluator process: fetches parameters from the shards now and then, and measures them on the
// test set.
#pragma once

#include <optional>
#include <string>

#include "core/target.h"
#include "node/member.h"
#include "worker/task.h"

namespace drover {

struct EvaluatorSettings {
  MemberIdentity identity;
  std::string save_model;         // where the final parameters are written; empty: nowhere
  std::optional<Target> stop_at;  // parameters that reach it are the final ones
  Duration rejoin_for{};          // how long it tries in vain to join again; see attempts.h
};

// Evaluates until the run is over. Returns the process's exit status.
int run_evaluator(const EvaluatorSettings& settings, Task& task);

}  // namespace drover

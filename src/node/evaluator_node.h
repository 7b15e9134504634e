// The evaluator process: fetches parameters from the shards at regular steps, and measures them on
// the test set.
#pragma once

#include <optional>
#include <string>

#include "core/target.h"
#include "node/member.h"
#include "worker/task.h"

namespace drover {

struct EvaluatorSettings {
  MemberIdentity identity;
  std::string save_model;         // path for the final parameters; empty: they are not saved
  std::optional<Target> stop_at;  // parameters that reach it are saved as the final ones
  Duration rejoin_for{};          // the patience of run_attempts() (node/attempts.h)
};

// Evaluates until the run is over. Returns the process's exit status.
int run_evaluator(const EvaluatorSettings& settings, Task& task);

}  // namespace drover

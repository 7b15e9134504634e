// StepTimes: what became known of one step's run-times. Policies and forecasters learn from this
// and from nothing else, so whatever is not in here cannot leak into a decision.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "core/time.h"

namespace drover {

enum class Known : uint8_t {
  kNothing,  // the worker took no part in the step
  kArrived,  // its run-time
  kLonger,   // only that it took longer than this: censored
};

struct StepTimes {
  Step step = 0;
  std::vector<double> seconds;  // by worker; in a replay, whatever unit the trace has
  std::vector<Known> known;     // by worker; what `seconds` means
  double elapsed = 0.0;         // from the step's opening to its close
  uint32_t contributors = 0;    // gradients that the step used
  double fixed = 0.0;           // of a run-time: what does not depend on the share
  std::vector<double> shares;   // by worker: of a usual mini-batch; empty: a whole one for all
};

// How long a shard took to answer a worker's pull: from asking to the last of its blocks being
// there.
struct PullResponse {
  Duration time{};
  bool came = false;  // if not, it has taken so long already
  bool operator==(const PullResponse&) const = default;
};

}  // namespace drover

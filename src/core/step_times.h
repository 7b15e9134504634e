// StepTimes: the observed run-times of one step. Policies and forecasters learn from this and from
// nothing else, so other knowledge cannot leak into a decision.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "core/time.h"

namespace drover {

enum class Known : uint8_t {
  kNothing,  // the worker took no part in the step
  kArrived,  // the run-time
  kLonger,   // a lower bound of the run-time: censored
};

struct StepTimes {
  Step step = 0;
  std::vector<double> seconds;  // by worker; in a replay, in the trace's unit of time
  std::vector<Known> known;     // by worker: what `seconds` means
  double elapsed = 0.0;         // from the step's opening to its close
  uint32_t contributors = 0;    // gradients that the step used
  double fixed = 0.0;           // the part of a run-time that does not depend on the share
  std::vector<double> shares;   // by worker, of a default mini-batch; empty: 1 for all
};

// The time a shard took to answer a worker's pull: from the request to the arrival of the last of
// its blocks.
struct PullResponse {
  Duration time{};
  bool came = false;  // false: the answer is incomplete, and `time` is a lower bound
  bool operator==(const PullResponse&) const = default;
};

}  // namespace drover

// StragglerRule: what a worker does with its gradient when the step closes without it.
#pragma once

#include <cstdint>

#include "core/ids.h"
#include "core/random_draw.h"

namespace drover {

enum class StragglerRule : uint8_t {
  kStop,    // it aborts the gradient and starts on the newest parameters
  kFinish,  // it finishes the gradient, which arrives too late to be used
};

// Whether a straggler is a probe: it finishes its gradient, so that its run-time becomes known.
// `share` of the stragglers are probes, drawn by seed, step and worker, independently of run-times.
constexpr bool is_probe(uint64_t seed, double share, Step step, WorkerId worker) {
  return unit_interval(draw({seed, static_cast<uint64_t>(Purpose::kProbes), step, worker})) < share;
}

}  // namespace drover

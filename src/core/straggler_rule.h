// StragglerRule: what becomes of the work of those whom a step did not wait for.
#pragma once

#include <cstdint>

#include "core/ids.h"
#include "core/random_draw.h"

namespace drover {

enum class StragglerRule : uint8_t {
  kStop,    // it is left off, and its worker starts on the newest parameters
  kFinish,  // it is finished, and comes too late
};

// Whether a straggler is a probe, let finish for the sake of knowing: that share of them, drawn
// from seed, step and worker, never from run-times.
constexpr bool is_probe(uint64_t seed, double share, Step step, WorkerId worker) {
  return unit_interval(draw({seed, static_cast<uint64_t>(Purpose::kProbes), step, worker})) < share;
}

}  // namespace drover

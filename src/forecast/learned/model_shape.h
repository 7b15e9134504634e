// ModelShape: what a learned model of run-times looks like; every size there is, with its default.
//
// A deep state-space model after Krishnan et al. and Teng & Wood: a Gaussian latent state z of the
// whole cluster moves from step to step through a gated MLP; an emission tells from z how long
// every worker is going to take, on a logarithmic scale; a recurrent network that reads the last
// `window` steps backwards proposes q(z_t | z_t-1, x). model_weights.h has the formulas.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/result.h"

namespace drover {

// What the emission makes of z.
enum class Emission : uint8_t {
  // One network for all workers, told of each by what it did of late (worker_features.h) and a
  // small
  // embedding: anybody may come and go, and few steps are enough to learn from.
  kShared,
  // The published model: an output for every worker of the cluster by name.
  kWorkers,
  // The published model for large clusters: the sorted run-times, whoever's they are.
  kSorted,
};
std::string_view name_of(Emission emission);
Result<Emission> parse_emission(std::string_view name);

struct ModelShape {
  Emission emission = Emission::kShared;
  uint32_t workers = 0;  // of the cluster it was fitted on

  uint32_t latent = 8;       // numbers in z
  uint32_t window = 8;       // steps that the recurrent network reads
  uint32_t rnn = 24;         // its hidden numbers
  uint32_t transition = 24;  // hidden numbers of gate and proposal

  // kShared alone.
  uint32_t embedding = 4;       // numbers that tell a worker from others that behave alike
  uint32_t pooled_hidden = 24;  // set encoder: hidden numbers per worker,
  uint32_t pooled = 16;         // and what their mean over all workers is mapped to
  uint32_t worker_hidden = 32;
  uint32_t components = 3;  // of the mixture that a worker's run-time is drawn from

  // kWorkers and kSorted alone.
  uint32_t emission_hidden = 64;

  bool operator==(const ModelShape&) const = default;
};

// The defaults for this emission; the published one has larger networks and reads more steps.
ModelShape default_shape(Emission emission, uint32_t workers);

// What makes no sense: sizes of zero or beyond what a file may ask for.
Status check_shape(const ModelShape& shape);

}  // namespace drover

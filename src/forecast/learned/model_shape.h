// ModelShape: the sizes of a learned model of run-times, with their defaults.
//
// A deep state-space model after Krishnan et al. and Teng & Wood. A Gaussian latent state z of the
// whole cluster moves from step to step through a gated MLP. An emission maps z to the log run-time
// of each worker. A recurrent network that reads the last `window` steps backwards proposes
// q(z_t | z_t-1, x). model_weights.h has the formulas.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/result.h"

namespace drover {

// The outputs of the emission.
enum class Emission : uint8_t {
  // One network for all workers. Its inputs are a worker's recent run-times (worker_features.h) and
  // a small embedding. It works when workers join and leave, and a few steps suffice for a fit.
  kShared,
  // The published model: one output per worker of the cluster.
  kWorkers,
  // The published model for large clusters: sorted run-times, without worker identities.
  kSorted,
};
std::string_view name_of(Emission emission);
Result<Emission> parse_emission(std::string_view name);

struct ModelShape {
  Emission emission = Emission::kShared;
  uint32_t workers = 0;  // of the cluster that it was fitted to

  uint32_t latent = 8;       // size of z
  uint32_t window = 8;       // steps that the recurrent network reads
  uint32_t rnn = 24;         // hidden size of the recurrent network
  uint32_t transition = 24;  // hidden size of gate and proposal

  // kShared only.
  uint32_t embedding = 4;       // size of a worker's embedding
  uint32_t pooled_hidden = 24;  // set encoder: hidden size per worker
  uint32_t pooled = 16;         // set encoder: output size
  uint32_t worker_hidden = 32;
  uint32_t components = 3;  // of the mixture distribution of a run-time

  // kWorkers and kSorted only.
  uint32_t emission_hidden = 64;

  bool operator==(const ModelShape&) const = default;
};

// The defaults for this emission. The published emissions have larger networks and a longer window.
ModelShape default_shape(Emission emission, uint32_t workers);

// Fails if a size is zero, or larger than a file may request.
Status check_shape(const ModelShape& shape);

}  // namespace drover

// Builds: the vectorised passes of a learned model, compiled for several CPU generations. The
// program selects one at run time.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "forecast/learned/published_emission.h"
#include "forecast/learned/shared_emission.h"
#include "forecast/learned/state_space.h"

namespace drover {

struct Build {
  std::string_view name;
  std::unique_ptr<StateSpace> (*state_space)(const ModelWeights& weights);
  std::unique_ptr<SharedEmission> (*shared_emission)(const ModelWeights& weights);
  std::unique_ptr<PublishedEmission> (*published_emission)(const ModelWeights& weights);
};

// The builds that this machine supports, the fastest last.
std::vector<Build> builds();

#define DROVER_DECLARE_BUILD(name)                                                         \
  namespace name {                                                                         \
  std::unique_ptr<StateSpace> make_state_space(const ModelWeights& weights);               \
  std::unique_ptr<SharedEmission> make_shared_emission(const ModelWeights& weights);       \
  std::unique_ptr<PublishedEmission> make_published_emission(const ModelWeights& weights); \
  }
DROVER_DECLARE_BUILD(baseline)
DROVER_DECLARE_BUILD(v3)  // x86-64-v3: AVX2 and fused multiply-add
#undef DROVER_DECLARE_BUILD

}  // namespace drover

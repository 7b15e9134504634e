#include "forecast/learned/builds.h"

namespace drover {

StateSpace::~StateSpace() = default;
SharedEmission::~SharedEmission() = default;
PublishedEmission::~PublishedEmission() = default;

std::vector<Build> builds() {
  std::vector<Build> builds = {{"baseline", baseline::make_state_space,
                                baseline::make_shared_emission, baseline::make_published_emission}};
#ifdef DROVER_HAS_V3
  if (__builtin_cpu_supports("x86-64-v3")) {
    builds.push_back(
        {"v3", v3::make_state_space, v3::make_shared_emission, v3::make_published_emission});
  }
#endif
  return builds;
}

}  // namespace drover

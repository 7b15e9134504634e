#include "forecast/learned/model_shape.h"

#include <fmt/format.h>

#include <array>

#include "core/nearest.h"

namespace drover {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"shared", "workers", "sorted"};
// Far larger than useful, and far too small to exhaust memory.
constexpr uint32_t kMostHidden = 4096;
constexpr uint32_t kMostWorkers = 1'000'000;

}  // namespace

std::string_view name_of(Emission emission) { return kNames[static_cast<size_t>(emission)]; }

Result<Emission> parse_emission(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Emission>(i);
  }
  return invalid_input(fmt::format("unknown emission '{}'.{} Emissions: {}", name,
                                   did_you_mean(name, kNames), fmt::join(kNames, ", ")));
}

ModelShape default_shape(Emission emission, uint32_t workers) {
  ModelShape shape{.emission = emission, .workers = workers};
  if (emission == Emission::kShared) return shape;
  shape.latent = 16;
  shape.window = 20;
  shape.rnn = 64;
  shape.transition = 32;
  return shape;
}

Status check_shape(const ModelShape& shape) {
  struct Size {
    std::string_view name;
    uint32_t value;
    uint32_t most;
  };
  const std::array sizes = {
      Size{"workers", shape.workers, kMostWorkers},
      Size{"latent", shape.latent, kMostHidden},
      Size{"window", shape.window, kMostHidden},
      Size{"rnn", shape.rnn, kMostHidden},
      Size{"transition", shape.transition, kMostHidden},
      Size{"embedding", shape.embedding, kMostHidden},
      Size{"pooled_hidden", shape.pooled_hidden, kMostHidden},
      Size{"pooled", shape.pooled, kMostHidden},
      Size{"worker_hidden", shape.worker_hidden, kMostHidden},
      Size{"components", shape.components, 64},
      Size{"emission_hidden", shape.emission_hidden, kMostHidden},
  };
  for (const Size& size : sizes) {
    if (size.value >= 1 && size.value <= size.most) continue;
    return invalid_input(
        fmt::format("{} is {}, but must be from 1 to {}", size.name, size.value, size.most));
  }
  return done();
}

}  // namespace drover

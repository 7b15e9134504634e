// What is simulated: a job, a cluster, and what goes wrong in it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "coordinator/coordinator.h"
#include "shard/shard.h"
#include "sim/scenario.h"
#include "sim/simulated_worker.h"
#include "wire/number_type.h"

namespace drover {

struct SimulationSettings {
  // With `recovers` whatever is lost comes back, and the run restarts where it must.
  CoordinatorSettings coordinator;
  uint32_t batch = 1;
  bool own_parts = false;         // see SampleShare
  std::vector<uint32_t> batches;  // by worker, where they differ; else `batch` for all
  size_t window_bytes = Shard::kWindowBytes;
  uint64_t seed = 1;
  NumberType number_type = NumberType::kFloat32;  // of gradients under way
  std::optional<SimulatedScripts> scripts = {};   // workers bring their model
  Scenario scenario;

  uint32_t batch_of(WorkerId worker) const { return batches.empty() ? batch : batches[worker]; }
};

}  // namespace drover

// The settings of a simulation: the job, the cluster and its faults.
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
  // With `recovers`, lost processes are restarted, and the run restarts if necessary.
  CoordinatorSettings coordinator;
  uint32_t batch = 1;
  bool own_parts = false;         // see SampleShare
  std::vector<uint32_t> batches;  // by worker; empty: `batch` for all
  size_t window_bytes = Shard::kWindowBytes;
  uint64_t seed = 1;
  NumberType number_type = NumberType::kFloat32;  // of gradients in messages
  std::optional<SimulatedScripts> scripts = {};   // workers bring their model
  Scenario scenario;

  uint32_t batch_of(WorkerId worker) const { return batches.empty() ? batch : batches[worker]; }
};

}  // namespace drover

// The worker process: a training loop on the main thread, its connections on another.
#pragma once

#include <cstdint>
#include <vector>

#include "node/member.h"
#include "node/shared_floats.h"
#include "worker/slowness.h"
#include "worker/task.h"

namespace drover {

struct WorkerSettings {
  MemberIdentity identity;
  uint32_t workers = 1;
  uint32_t batch = 1;
  bool own_part = false;  // see SampleShare
  uint64_t seed = 1;
  std::vector<SlowRule> slow;
  NumberType wire_dtype = NumberType::kFloat32;  // of gradients that are sent
  bool partial = false;                          // not all parameters are waited for
  Sharing sharing = Sharing::kNo;                // of memory with shards
};

// Trains until the run is over. Returns the process's exit status: 0 if the run ended as it should.
int run_worker(const WorkerSettings& settings, Task& task);

}  // namespace drover

// SimulatedDisk: where a simulated run keeps its checkpoints. It does not take time by itself; it
// says how long writing and reading take, and which writes fail.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "coordinator/coordinator.h"
#include "core/checkpoint_part.h"
#include "core/result.h"
#include "sim/scenario.h"

namespace drover {

class SimulatedDisk {
 public:
  // The law must outlive this.
  SimulatedDisk(const DiskLaw& law, uint64_t seed) : law_(law), seed_(seed) {}

  // Of the next write or read.
  Duration write_time() { return time_of(law_.write); }
  Duration read_time() { return time_of(law_.read); }
  bool next_write_fails();

  void put(CheckpointPart part);
  // The manifest is written: from now on it is a checkpoint. REQUIRES: its parts were put.
  void make_checkpoint(CheckpointReady ready);
  // Null: there is none.
  const CheckpointReady* newest_before(Version before) const;
  // REQUIRES: a part of it was put.
  const std::map<ShardId, CheckpointPart>& parts_of(Version version) const {
    return parts_.at(version);
  }
  // The run continues from `version`: what is newer is another past's.
  void set_aside_after(Version version);

  // A shard's blocks as they were saved.
  Result<std::vector<SavedBlock>> read(const Plan& plan, ShardId shard) const;

 private:
  Duration time_of(Duration mean);

  const DiskLaw& law_;
  const uint64_t seed_;
  uint64_t uses_ = 0;  // the key of their randomness
  std::map<Version, std::map<ShardId, CheckpointPart>> parts_;
  std::map<Version, CheckpointReady> checkpoints_;
};

}  // namespace drover

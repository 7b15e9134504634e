// SimulatedDisk: stores the checkpoints of a simulated run. Calls take no virtual time: the disk
// returns how long writes and reads take, and which writes fail.
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
  // REQUIRES: the law outlives this object.
  SimulatedDisk(const DiskLaw& law, uint64_t seed) : law_(law), seed_(seed) {}

  // The duration of the next write or read.
  Duration write_time() { return time_of(law_.write); }
  Duration read_time() { return time_of(law_.read); }
  bool next_write_fails();

  void put(CheckpointPart part);
  // The manifest is written, so the checkpoint exists from now on. REQUIRES: its parts were put.
  void make_checkpoint(CheckpointReady ready);
  // The newest checkpoint of an earlier version; null: there is none.
  const CheckpointReady* newest_before(Version before) const;
  // REQUIRES: a part of this version was put.
  const std::map<ShardId, CheckpointPart>& parts_of(Version version) const {
    return parts_.at(version);
  }
  // The run continues from `version`: discards newer checkpoints.
  void set_aside_after(Version version);

  // The saved blocks of a shard.
  Result<std::vector<SavedBlock>> read(const Plan& plan, ShardId shard) const;

 private:
  Duration time_of(Duration mean);

  const DiskLaw& law_;
  const uint64_t seed_;
  uint64_t uses_ = 0;  // count of draws; keys them
  std::map<Version, std::map<ShardId, CheckpointPart>> parts_;
  std::map<Version, CheckpointReady> checkpoints_;
};

}  // namespace drover

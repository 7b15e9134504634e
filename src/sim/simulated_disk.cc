#include "sim/simulated_disk.h"

#include <iterator>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/random_draw.h"

namespace drover {

// Uniformly distributed from 0.5 to 1.5 times the mean.
Duration SimulatedDisk::time_of(Duration mean) {
  const double share =
      unit_interval(draw({seed_, static_cast<uint64_t>(Purpose::kFaults), ~uint64_t{0}, uses_++}));
  return from_seconds(seconds(mean) * (0.5 + share));
}

bool SimulatedDisk::next_write_fails() {
  return unit_interval(draw({seed_, static_cast<uint64_t>(Purpose::kFaults), ~uint64_t{1},
                             uses_++})) < law_.failures;
}

void SimulatedDisk::put(CheckpointPart part) {
  auto& parts = parts_[part.version];
  const ShardId shard = part.shard;
  parts.insert_or_assign(shard, std::move(part));
}

void SimulatedDisk::make_checkpoint(CheckpointReady ready) {
  DROVER_CHECK(parts_.contains(ready.version));
  const Version version = ready.version;
  checkpoints_.insert_or_assign(version, std::move(ready));
}

const CheckpointReady* SimulatedDisk::newest_before(Version before) const {
  const auto after = checkpoints_.lower_bound(before);
  return after == checkpoints_.begin() ? nullptr : &std::prev(after)->second;
}

void SimulatedDisk::set_aside_after(Version version) {
  checkpoints_.erase(checkpoints_.upper_bound(version), checkpoints_.end());
  parts_.erase(parts_.upper_bound(version), parts_.end());
}

Result<std::vector<SavedBlock>> SimulatedDisk::read(const Plan& plan, ShardId shard) const {
  const auto found = parts_.find(plan.first_step);
  if (found == parts_.end() || !checkpoints_.contains(plan.first_step))
    return invalid_input("there is no checkpoint of step " + std::to_string(plan.first_step));
  std::vector<SavedBlock> mine;
  for (const Block& block : plan.blocks.blocks) {
    if (block.shard != shard) continue;
    for (const auto& [writer, part] : found->second) {
      for (const SavedBlock& saved : part.blocks) {
        if (saved.offset == block.offset && saved.length == block.length) mine.push_back(saved);
      }
    }
  }
  return mine;
}

}  // namespace drover

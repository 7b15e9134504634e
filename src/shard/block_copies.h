// BlockCopies: copies of older versions of one block: snapshots for the evaluator, and saved blocks
// for checkpoints and the standby.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <utility>

#include "core/checkpoint_part.h"
#include "core/float_buffer.h"
#include "core/ids.h"
#include "wire/control.h"

namespace drover {

class BlockCopies {
 public:
  explicit BlockCopies(const Plan& plan)
      : steps_(plan.steps),
        evaluate_every_(plan.evaluate_every),
        checkpoint_every_(plan.checkpoint_every),
        standby_(plan.standby) {}

  // The run ends with that version.
  void end_at(Step steps) { steps_ = steps; }

  // Whether a snapshot of this version is to be kept.
  bool snapshot_due(Version version) const {
    return version >= steps_ || (evaluate_every_ > 0 && version % evaluate_every_ == 0);
  }
  // Whether this version is to be saved.
  bool save_due(Version version) const {
    return standby_ || is_checkpoint(version, checkpoint_every_, steps_);
  }

  // Keeps a snapshot, and drops the oldest of more than two.
  void keep_snapshot(Version version, ConstBuffer values) {
    snapshots_[0] = std::move(snapshots_[1]);
    snapshots_[1] = {version, std::move(values)};
  }
  // The snapshot of that version; null if it is not kept.
  ConstBuffer snapshot(Version version) const {
    for (const Snapshot& each : snapshots_) {
      if (each.values && each.version == version) return each.values;
    }
    return nullptr;
  }
  // The version of the newest snapshot; 0 if there is none.
  Version newest_snapshot() const { return snapshots_[1].values ? snapshots_[1].version : 0; }

  // Keeps a saved block until take_saved(), when all blocks of the shard have this version.
  void keep_saved(Version version, SavedBlock saved) { saved_[version] = std::move(saved); }
  // Removes and returns the saved block of that version, if there is one.
  std::optional<SavedBlock> take_saved(Version version) {
    const auto found = saved_.find(version);
    if (found == saved_.end()) return std::nullopt;
    std::optional<SavedBlock> taken = std::move(found->second);
    saved_.erase(found);
    return taken;
  }

 private:
  struct Snapshot {
    Version version = 0;
    ConstBuffer values;
  };
  Step steps_;
  const Step evaluate_every_;
  const Step checkpoint_every_;
  const bool standby_;
  // Two, so that an evaluator that has fetched a version from the first shard still finds it on the
  // last shard.
  std::array<Snapshot, 2> snapshots_;
  std::map<Version, SavedBlock> saved_;
};

}  // namespace drover

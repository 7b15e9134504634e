// CheckpointTally: counts the parts that shards have saved of each checkpoint, until the checkpoint
// is complete and its manifest is written. It decides which failures are reported, and knows
// whether the checkpoint of the last step is still to come.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/event.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "wire/control.h"

namespace drover {

class CheckpointTally {
 public:
  // There is a checkpoint after every `every` steps and after the last step. 0: no checkpoints.
  CheckpointTally(Step every, Step steps) : every_(every), steps_(steps) {}

  // The run has so many steps.
  void end_at(Step steps) { steps_ = steps; }

  // Whether shards save a checkpoint of this version. REQUIRES: version <= steps.
  bool has(Version version) const;

  struct Saved {
    std::optional<event::CheckpointFailed> failure = {};  // to be reported
    bool all = false;                                     // all shards have answered
    // By shard; not empty if all shards have saved their parts. The caller writes the manifest and
    // calls on_kept().
    std::vector<CheckpointSaved> parts = {};
  };
  // A shard has saved its part, or has failed to. `shards`: the number of shards that save a part.
  // REQUIRES: has(saved.version).
  Saved on_saved(ShardId shard, const CheckpointSaved& saved, size_t shards);

  // The manifest was written, or writing it failed. Returns the event to report, if any.
  std::optional<EventPayload> on_kept(Version version, const Status& kept, Duration took);
  // Stops waiting for the checkpoint of the last step. Returns the event to report.
  std::optional<EventPayload> give_up_last();

  // Whether the checkpoint of the last step is neither kept nor given up.
  bool awaits_last() const { return every_ > 0 && !last_is_over_; }
  // Whether any checkpoint was kept.
  bool any_kept() const { return any_kept_; }

 private:
  // Returns the failure if it is to be reported. After a kept checkpoint, each cause is reported
  // once until the next kept one.
  std::optional<event::CheckpointFailed> fail(event::CheckpointFailed failure);

  const Step every_;
  Step steps_;
  std::map<Version, std::map<ShardId, CheckpointSaved>> parts_;  // of incomplete checkpoints
  std::map<Version, uint64_t> bytes_;  // of checkpoints whose manifest is being written
  // The causes reported since the last kept checkpoint, with the errno.
  std::set<std::pair<CheckpointFailure, int>> reported_;
  bool last_is_over_ = false;
  bool any_kept_ = false;
};

}  // namespace drover

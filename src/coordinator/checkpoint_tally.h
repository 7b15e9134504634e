// CheckpointTally: counts the parts of checkpoints that shards have saved, until each checkpoint is
// whole and its manifest is written; knows which failures are worth reporting, and whether the
// checkpoint of the last step is still to come.
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
  // A checkpoint every so many steps and after the last. `every` is 0: there are none.
  CheckpointTally(Step every, Step steps) : every_(every), steps_(steps) {}

  // Whether shards save a checkpoint of this version. REQUIRES: there are so many steps.
  bool has(Version version) const;

  struct Saved {
    std::optional<event::CheckpointFailed> failure = {};  // to be reported
    bool all = false;                                     // all shards have answered
    std::vector<CheckpointSaved> parts = {};  // by shard, if none has failed: of a checkpoint whose
                                              // manifest is to be written, see on_kept()
  };
  // A shard has saved its part, or could not. `shards`: how many save one.
  // REQUIRES: has(saved.version).
  Saved on_saved(ShardId shard, const CheckpointSaved& saved, size_t shards);

  // The manifest is written, or why it is not. Returns the event to report, if any.
  std::optional<EventPayload> on_kept(Version version, const Status& kept, Duration took);
  // The checkpoint of the last step is not waited for any longer. Returns the event to report.
  std::optional<EventPayload> give_up_last();

  // The checkpoint of the last step is neither kept nor given up.
  bool awaits_last() const { return every_ > 0 && !last_is_over_; }
  // Whether a checkpoint was kept since this was made.
  bool any_kept() const { return any_kept_; }

 private:
  // Returns the failure if it is to be reported: one with the same cause as another since the last
  // checkpoint that was kept is not.
  std::optional<event::CheckpointFailed> fail(event::CheckpointFailed failure);

  const Step every_;
  const Step steps_;
  std::map<Version, std::map<ShardId, CheckpointSaved>>
      parts_;                          // of checkpoints that are not whole
  std::map<Version, uint64_t> bytes_;  // of checkpoints whose manifest is being written
  // Since the last checkpoint that was kept: why others were not, with the system's reason.
  std::set<std::pair<CheckpointFailure, int>> reported_;
  bool last_is_over_ = false;
  bool any_kept_ = false;
};

}  // namespace drover

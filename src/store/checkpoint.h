// Checkpoint: a whole checkpoint, open for reading; and a folder of them: which there are, which is
// the newest that can be used, which are to go.
//
//   DIR/step-0000000200/shard-0.safetensors   a part for each shard (store/checkpoint_file.h)
//                       shard-1.safetensors
//                       manifest.json         written last (store/checkpoint_manifest.h)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint_part.h"
#include "core/layout.h"
#include "core/result.h"
#include "store/checkpoint_manifest.h"

namespace drover {

class Checkpoint {
 public:
  // Checks everything but the numbers themselves: manifest, sizes and headers of the files, and
  // that each number of the layout is in exactly one of them. The error says which file and what.
  static Result<Checkpoint> open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const CheckpointManifest& manifest() const { return manifest_; }
  const Layout& layout() const { return layout_; }
  uint64_t bytes() const;

  // What was saved of these blocks, however it was cut then; the numbers are checked. Where a block
  // is made of some that had another number of updates each, it goes on with the highest.
  // REQUIRES: blocks lie within the layout.
  Result<std::vector<SavedBlock>> read(std::span<const Block> blocks) const;

  // Reads everything, and keeps nothing.
  Status verify() const;

 private:
  Checkpoint() = default;
  Status check_cover() const;

  std::string folder_;
  CheckpointManifest manifest_;
  Layout layout_;
  std::vector<CheckpointFile> files_;
};

// One that is, or was to be, in a folder of checkpoints.
struct CheckpointFound {
  Version step = 0;
  std::string folder;
  std::optional<Checkpoint> checkpoint;  // absent: it cannot be used, and ...
  std::string trouble;                   // ... why
};

// DIR/step-0000000200.
std::string checkpoint_folder(const std::string& dir, Version step);

// Oldest first. `deep`: the numbers are read and checked too. An error if there is no such folder.
Result<std::vector<CheckpointFound>> list_checkpoints(const std::string& dir, bool deep);

struct NewestCheckpoint {
  std::optional<Checkpoint> checkpoint;  // absent: there is none that can be used
  std::vector<CheckpointFound> skipped;  // newer ones that cannot
};
// The newest whose every number is right. `path` may also be the folder of one checkpoint; then it
// is that one, or an error. In a folder of several only those of steps before `before` count.
Result<NewestCheckpoint> newest_checkpoint(const std::string& path, Version before = kEndless);

// Keeps the newest `keep` that can be used, at least one, and removes whatever else is older than
// the newest. What crashed attempts have left beyond that stays: somebody may be writing it now.
Status prune_checkpoints(const std::string& dir, uint32_t keep);

// A run is going to write from `step` on: what others have left there is moved aside, if it was
// ever finished (DIR/step-0000000200.aside, or .aside-2 if that is there), or else removed. Gives
// what was moved, where it is now.
Result<std::vector<std::string>> set_aside_after(const std::string& dir, Version step);

}  // namespace drover

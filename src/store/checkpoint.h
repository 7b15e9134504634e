// Checkpoint: a checkpoint that is open for reading. Functions for a folder of checkpoints: list
// them, find the newest usable one, remove old ones.
//
//   DIR/step-0000000200/shard-0.safetensors   one part for each shard (store/checkpoint_file.h)
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
  // Checks everything except the numbers: the manifest, sizes and headers of the files, and that
  // each number of the layout is in exactly one file. The error names the file and what is wrong.
  static Result<Checkpoint> open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const CheckpointManifest& manifest() const { return manifest_; }
  const Layout& layout() const { return layout_; }
  uint64_t bytes() const;

  // Reads and checks the saved state of these blocks. The saved blocks may have other boundaries. A
  // block that joins several saved blocks gets their largest number of updates.
  // REQUIRES: blocks are within the layout.
  Result<std::vector<SavedBlock>> read(std::span<const Block> blocks) const;

  // Reads and checks all files.
  Status verify() const;

 private:
  Checkpoint() = default;
  Status check_cover() const;

  std::string folder_;
  CheckpointManifest manifest_;
  Layout layout_;
  std::vector<CheckpointFile> files_;
};

// A checkpoint in a folder of checkpoints, usable or not.
struct CheckpointFound {
  Version step = 0;
  std::string folder;
  std::optional<Checkpoint> checkpoint;  // absent: it is unusable
  std::string trouble;                   // why it is unusable
};

// DIR/step-0000000200.
std::string checkpoint_folder(const std::string& dir, Version step);

// Lists checkpoints, oldest first. `deep`: reads and checks the numbers too. An error if `dir` does
// not exist.
Result<std::vector<CheckpointFound>> list_checkpoints(const std::string& dir, bool deep);

struct NewestCheckpoint {
  std::optional<Checkpoint> checkpoint;  // absent: there is no usable one
  std::vector<CheckpointFound> skipped;  // newer checkpoints that are unusable
};
// Finds the newest checkpoint that is completely valid. `path` may also be the folder of a single
// checkpoint; the result is then that one or an error. In a folder of checkpoints, only those of
// steps before `before` are considered.
Result<NewestCheckpoint> newest_checkpoint(const std::string& path, Version before = kEndless);

// Keeps the newest `keep` usable checkpoints, at least one, and removes all others that are older
// than the newest usable one. Incomplete newer ones stay, since a process may be writing them.
Status prune_checkpoints(const std::string& dir, uint32_t keep);

// Prepares a folder for a run that continues from `step`. Moves complete checkpoints of later steps
// aside (DIR/step-0000000200.aside, or .aside-2 if that exists) and removes incomplete ones.
// Returns the new paths of the moved ones.
Result<std::vector<std::string>> set_aside_after(const std::string& dir, Version step);

}  // namespace drover

// CheckpointManifest: describes a checkpoint and lists its files. It is written last, so that a
// checkpoint is complete if and only if its manifest exists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/atomic_file.h"
#include "core/checkpoint_part.h"
#include "core/ids.h"
#include "core/layout.h"
#include "core/result.h"
#include "core/training.h"
#include "store/checkpoint_file.h"

namespace drover {

inline constexpr const char* kManifestName = "manifest.json";

struct CheckpointManifest {
  Version step = 0;  // number of completed steps
  RunId run = 0;
  uint64_t seed = 0;
  uint32_t workers = 0;
  std::string when;       // ISO 8601, UTC
  SettingTexts settings;  // settings of learning and of the task
  SavedNoise noise;
  std::vector<TensorSpec> tensors;  // the layout
  std::vector<CheckpointFileEntry> files;
  bool operator==(const CheckpointManifest&) const = default;
};

// Writes the manifest into `folder`, beside the files.
Status write_manifest(const CheckpointManifest& manifest, const std::string& folder,
                      const KeepWriting& keep_writing = {});
// An error if there is no manifest, or if it is damaged or invalid.
Result<CheckpointManifest> read_manifest(const std::string& folder);

}  // namespace drover

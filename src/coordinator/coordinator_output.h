// CoordinatorOutput: the messages, records and checkpoints that a coordinator hands to its caller.
#pragma once

#include <vector>

#include "coordinator/run_records.h"
#include "core/checkpoint_part.h"
#include "core/ids.h"
#include "core/layout.h"
#include "core/training.h"
#include "wire/control.h"
#include "wire/outbox.h"

namespace drover {

// All shards have saved their parts of a checkpoint. It is valid once its manifest is written.
struct CheckpointReady {
  Version version = 0;
  std::vector<CheckpointSaved> parts;  // by shard
  SettingTexts settings;               // of learning
  SavedNoise noise;
  std::vector<TensorSpec> tensors;
};

struct CoordinatorOutput {
  Outbox messages;
  std::vector<RunRecord> records;
  // For each, the caller writes the manifest and calls Coordinator::on_checkpoint_kept().
  std::vector<CheckpointReady> checkpoints;
};

}  // namespace drover

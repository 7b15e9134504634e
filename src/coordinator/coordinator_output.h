// CoordinatorOutput: what a coordinator wants sent, recorded and stored.
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

// All shards have saved their parts of a checkpoint: it becomes one when its manifest is written.
struct CheckpointReady {
  Version version = 0;
  std::vector<CheckpointSaved> parts;  // by shard
  SettingTexts settings;               // how it learns
  SavedNoise noise;
  std::vector<TensorSpec> tensors;
};

struct CoordinatorOutput {
  Outbox messages;
  std::vector<RunRecord> records;
  std::vector<CheckpointReady> checkpoints;  // answered with Coordinator::on_checkpoint_kept()
};

}  // namespace drover

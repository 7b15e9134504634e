// CheckpointSaver writes a shard's parts of checkpoints. CheckpointKeeper, in the coordinator's
// process, writes the manifest when all parts are there. Both work beside the event loop, so that
// no step waits for a disk.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/coordinator.h"
#include "core/checkpoint_part.h"
#include "core/result.h"
#include "node/background_thread.h"
#include "wire/control.h"

namespace drover {

class CheckpointSaver {
 public:
  // `report` is called on the loop, once for each part.
  CheckpointSaver(boost::asio::io_context& loop, std::function<void(CheckpointSaved)> report)
      : report_(std::move(report)), thread_(loop) {}

  // Writes one part at a time. A part that comes while another is being written is skipped, unless
  // it is that of the last step.
  void save(const Plan& plan, CheckpointPart part);

 private:
  void write(const std::string& dir, CheckpointPart part);

  std::function<void(CheckpointSaved)> report_;
  std::optional<CheckpointPart> waiting_;
  BackgroundThread thread_;  // last: what it uses must outlive it
};

struct CheckpointKeeping {
  std::string dir;          // empty: there are no checkpoints
  uint32_t keep = 3;        // how many to keep; beside that of the last step at least one
  Version last = kEndless;  // the last step
  SettingTexts settings;    // of the job, for the manifest
  RunId run = 0;
  uint64_t seed = 0;
  uint32_t workers = 0;
};

class CheckpointKeeper {
 public:
  // `kept` is called on the loop, once for each checkpoint: whether it is complete, and how long
  // that took, including its slowest part.
  using Kept = std::function<void(Version, const Status&, Duration)>;
  CheckpointKeeper(boost::asio::io_context& loop, CheckpointKeeping keeping, Kept kept)
      : keeping_(std::move(keeping)), kept_(std::move(kept)), thread_(loop) {}

  void keep(CheckpointReady ready);

 private:
  void begin_next();

  const CheckpointKeeping keeping_;
  Kept kept_;
  std::deque<CheckpointReady> waiting_;
  BackgroundThread thread_;
};

}  // namespace drover

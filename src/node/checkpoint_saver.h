// CheckpointSaver writes a shard's parts of checkpoints, CheckpointKeeper makes checkpoints of them
// in the coordinator's process: both beside the event loop, so that no step waits for a disk.
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
  // `tell` is called on the loop, once for each part.
  CheckpointSaver(boost::asio::io_context& loop, std::function<void(CheckpointSaved)> tell)
      : tell_(std::move(tell)), thread_(loop) {}

  // One at a time: while the last is being written the next is passed over, unless it is that of
  // the last step.
  void save(const Plan& plan, CheckpointPart part);

 private:
  void write(const std::string& dir, CheckpointPart part);

  std::function<void(CheckpointSaved)> tell_;
  std::optional<CheckpointPart> waiting_;
  BackgroundThread thread_;  // last: what it uses must outlive it
};

struct CheckpointKeeping {
  std::string dir;          // empty: none are kept
  uint32_t keep = 3;        // so many; until the run has ended, one beside that of its last step
  Version last = kEndless;  // step
  SettingTexts settings;    // of the job, beside how it learns
  RunId run = 0;
  uint64_t seed = 0;
  uint32_t workers = 0;
};

class CheckpointKeeper {
 public:
  // `kept` is called on the loop, once for each: whether it is a checkpoint now, and how long that
  // took, with its slowest part.
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

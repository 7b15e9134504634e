// SimulatedEvaluator: evaluates snapshots of the parameters. Evaluation takes no virtual time.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>

#include "core/float_buffer.h"
#include "worker/parameter_pull.h"
#include "worker/task.h"

namespace drover {

class SimulatedEvaluator {
 public:
  SimulatedEvaluator(Task& task, uint32_t shards, std::function<void(Outbox)> send);

  void on_welcome(const Welcome& welcome);
  void on_connected(ShardId shard);
  void on_frame(const FrameHeader& header, std::span<const float> floats);
  void on_over() { over_ = true; }

 private:
  void fetch_next();

  Task& task_;
  const uint32_t shards_;
  const std::function<void(Outbox)> send_;
  const SharedBuffer parameters_;
  Welcome welcome_;
  std::optional<ParameterPull> pull_;
  std::set<ShardId> connected_;
  Version version_ = 0;  // evaluated last
  bool fetching_ = false;
  bool over_ = false;
};

}  // namespace drover

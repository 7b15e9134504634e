// The shard process: drives a Shard with sockets and the real clock.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/ids.h"
#include "core/time.h"
#include "net/message_port.h"
#include "node/doorman.h"
#include "node/shared_floats.h"
#include "server/shard.h"

namespace drover {

struct ShardSettings {
  ShardId id = 0;
  Role role = Role::kShard;  // or kStandby: the second process for this shard
  RunKey key;
  std::string listen;              // where workers reach it
  std::string coordinator;         // its address
  Sharing sharing = Sharing::kNo;  // of memory with workers
  size_t window_bytes = Shard::kWindowBytes;
  bool adapt_window = true;  // smaller while packets of workers get lost
  Duration rejoin_for{};     // how long it tries in vain to join again; see sittings.h
  // Blocks travel by this between it and workers that have one too; null: on sockets.
  std::shared_ptr<MessagePort> port = nullptr;
};

// Serves until the run is over. Returns the process's exit status.
int run_shard(const ShardSettings& settings);

}  // namespace drover

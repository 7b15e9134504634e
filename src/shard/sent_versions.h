// SentVersions: with partial pulls, which versions of a shard's blocks were sent to each worker.
//
// A pull is answered with the blocks that are newer than those sent before. To bound the queue of a
// slow connection, at most two versions of all blocks may be in flight to a worker. Its next pull,
// which acknowledges received blocks, is answered with the newest versions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/ids.h"

namespace drover {

class SentVersions {
 public:
  SentVersions(uint32_t workers, size_t blocks)
      : none_{.newest = std::vector<std::optional<Version>>(blocks)}, workers_(workers, none_) {}

  // A worker has a new connection, on which nothing was sent yet.
  void on_joined(WorkerId worker) { workers_[worker] = none_; }
  // The worker has received `received` blocks on this connection.
  void on_pull(WorkerId worker, uint32_t received) { workers_[worker].received = received; }

  // Whether the shard's block number `block` was sent to the worker in `version` or newer.
  bool has(WorkerId worker, size_t block, Version version) const {
    const auto& newest = workers_[worker].newest[block];
    return newest && *newest >= version;
  }
  // Whether that block may be sent in `version` now: it was not sent yet, and fits the bound.
  bool may_send(WorkerId worker, size_t block, Version version) const {
    const Sent& sent = workers_[worker];
    return sent.newest[block] != version && sent.blocks - sent.received < 2 * sent.newest.size();
  }
  void on_sent(WorkerId worker, size_t block, Version version) {
    ++workers_[worker].blocks;
    workers_[worker].newest[block] = version;
  }

 private:
  struct Sent {
    uint32_t blocks = 0;
    uint32_t received = 0;
    std::vector<std::optional<Version>> newest;  // by block
  };
  Sent none_;
  std::vector<Sent> workers_;
};

}  // namespace drover

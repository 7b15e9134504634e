// SentVersions: in partial pull, which versions of a shard's blocks were sent to each worker.
//
// A pull brings whatever is newer than what was sent before. A worker with a slow connection must
// not be sent more and more: two versions of all blocks may be on their way to it, and its next
// pull, which says what has come, brings the newest.
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

  // A new connection of this worker: nothing was sent on it.
  void on_joined(WorkerId worker) { workers_[worker] = none_; }
  // It says how many blocks have come on this connection.
  void on_pull(WorkerId worker, uint32_t came) { workers_[worker].came = came; }

  // Whether it was sent block number `block` (of this shard's) in `version` or newer.
  bool has(WorkerId worker, size_t block, Version version) const {
    const auto& newest = workers_[worker].newest[block];
    return newest && *newest >= version;
  }
  // Whether it may be sent that block in `version` now: it was not yet, and there is room.
  bool may_send(WorkerId worker, size_t block, Version version) const {
    const Sent& sent = workers_[worker];
    return sent.newest[block] != version && sent.blocks - sent.came < 2 * sent.newest.size();
  }
  void on_sent(WorkerId worker, size_t block, Version version) {
    ++workers_[worker].blocks;
    workers_[worker].newest[block] = version;
  }

 private:
  struct Sent {
    uint32_t blocks = 0;
    uint32_t came = 0;
    std::vector<std::optional<Version>> newest;  // by block
  };
  Sent none_;
  std::vector<Sent> workers_;
};

}  // namespace drover

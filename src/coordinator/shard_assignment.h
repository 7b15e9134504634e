// ShardAssignment: which processes could serve each shard, which one serves it, and which are
// ready. Without standbys there is one process for each shard. With standbys there are two, and the
// versions that each keeps in memory decide which one serves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "wire/control.h"

namespace drover {

class ShardAssignment {
 public:
  explicit ShardAssignment(uint32_t shards) : shards_(shards) {}

  // A shard's process, or its standby, wants to join. An error is the reason to refuse it.
  Status on_hello(const Hello& hello);
  // REQUIRES: the process does not serve. (The loss of a serving process ends or restarts the run.)
  void on_lost(Role role, ShardId shard) { here_.erase({shard, role}); }

  enum class Settled : uint8_t { kNotYet, kYes, kNever };
  // Decides which process serves each shard, once that is known. If both processes of a shard can
  // serve it, the kShard one does. A standby without state to continue from serves only if the
  // other process is missing and `waited` is true (the run has waited long enough for it). `kept`:
  // the version to continue from, and the shards that have a part of it. kNever: for some shard no
  // process keeps its part.
  Settled settle(const std::optional<std::pair<KeptVersion, std::set<ShardId>>>& kept, bool waited);

  bool serves(Role role, ShardId shard) const {
    const auto found = serving_.find(shard);
    return found != serving_.end() && found->second == role;
  }
  Role serving(ShardId shard) const { return serving_.at(shard); }
  // The address of the process that serves. REQUIRES: settle() has returned kYes.
  const std::string& address(ShardId shard) const {
    return here_.at({shard, serving(shard)}).address;
  }
  // The process has its parameters. Ignored for a process that does not serve.
  void on_ready(Role role, ShardId shard) {
    if (serves(role, shard)) ready_.insert(shard);
  }
  bool all_ready() const { return ready_.size() == shards_; }

  // All processes that joined and are not lost, whether they serve or not.
  std::vector<std::pair<Role, ShardId>> here() const;
  // Shards without any process.
  std::vector<ShardId> missing() const;

 private:
  struct Process {
    std::string address;
    std::vector<KeptVersion> kept;
  };
  const Process* find(ShardId shard, Role role) const;

  const uint32_t shards_;
  std::map<std::pair<ShardId, Role>, Process> here_;
  std::map<ShardId, Role> serving_;
  std::set<ShardId> ready_;
};

}  // namespace drover

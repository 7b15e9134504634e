// ShardAssignment: which processes could serve each shard, which one does, and which are ready.
// Without standbys there is one process for each shard; with them there are two, and what each
// keeps in memory says which is to serve.
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
  // REQUIRES: it does not serve. The loss of a process that serves ends the run or restarts it.
  void on_lost(Role role, ShardId shard) { here_.erase({shard, role}); }

  enum class Settled : uint8_t { kNotYet, kYes, kNever };
  // Decides which process serves each shard, as soon as that is known: of two that can, the shard's
  // own. A standby that has nothing to continue from is taken only if the other does not come:
  // `waited` says that it was waited for long enough. `kept`: the version to continue from, and the
  // shards that have a part of it; kNever: no process has the part of some shard.
  Settled settle(const std::optional<std::pair<KeptVersion, std::set<ShardId>>>& kept, bool waited);

  bool serves(Role role, ShardId shard) const {
    const auto found = serving_.find(shard);
    return found != serving_.end() && found->second == role;
  }
  Role serving(ShardId shard) const { return serving_.at(shard); }
  // Where the process that serves is reached. REQUIRES: settle() has returned kYes.
  const std::string& address(ShardId shard) const {
    return here_.at({shard, serving(shard)}).address;
  }
  // It has its parameters. Means nothing of a process that does not serve.
  void on_ready(Role role, ShardId shard) {
    if (serves(role, shard)) ready_.insert(shard);
  }
  bool all_ready() const { return ready_.size() == shards_; }

  // All that joined and are not lost, whether they serve or not.
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

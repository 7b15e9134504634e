// ShardSeats: which processes could serve each shard, and which does. Without standbys there is one
// for each; with them there are two, and what each keeps in memory says which is to serve.
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

class ShardSeats {
 public:
  explicit ShardSeats(uint32_t shards) : shards_(shards) {}

  // A shard's process, or its standby, is here. An error is the reason to refuse it.
  Status on_hello(const Hello& hello);
  // REQUIRES: it does not serve; without who does, nothing here is true any more.
  void on_lost(Role role, ShardId shard) { here_.erase({shard, role}); }

  enum class Settled : uint8_t { kNotYet, kYes, kNever };
  // Says who serves, as soon as that is known: of two who can, the shard's own process. A standby
  // that has nothing to go on from is asked only if the other does not come: `waited` says that it
  // was waited for long enough. `kept`: the version to go on from, and the shards that have a part
  // of it; kNever: there is one whose part nobody has.
  Settled settle(const std::optional<std::pair<KeptVersion, std::set<ShardId>>>& kept, bool waited);

  bool serves(Role role, ShardId shard) const {
    const auto found = serving_.find(shard);
    return found != serving_.end() && found->second == role;
  }
  Role serving(ShardId shard) const { return serving_.at(shard); }
  // Where the one who serves is reached. REQUIRES: it is settled.
  const std::string& address(ShardId shard) const {
    return here_.at({shard, serving(shard)}).address;
  }
  // All who are here, whether they serve or not.
  std::vector<std::pair<Role, ShardId>> here() const;
  bool is_here(ShardId shard) const {
    return here_.contains({shard, Role::kShard}) || here_.contains({shard, Role::kStandby});
  }

 private:
  struct Sitter {
    std::string address;
    std::vector<KeptVersion> kept;
  };
  const Sitter* find(ShardId shard, Role role) const;

  const uint32_t shards_;
  std::map<std::pair<ShardId, Role>, Sitter> here_;
  std::map<ShardId, Role> serving_;
};

}  // namespace drover

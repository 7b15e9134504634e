#include "coordinator/shard_seats.h"

#include <algorithm>

namespace drover {

Status ShardSeats::on_hello(const Hello& hello) {
  const std::string name = peer_name(hello.role, hello.index);
  if (hello.index >= shards_) return invalid_input("this run has no " + name);
  // Its earlier life, perhaps, whose end has not been noticed yet.
  if (find(hello.index, hello.role) != nullptr)
    return Error{ErrorKind::kNotNow, name + " is here already"};
  here_[{hello.index, hello.role}] = {.address = hello.address, .kept = hello.kept};
  return done();
}

const ShardSeats::Sitter* ShardSeats::find(ShardId shard, Role role) const {
  const auto found = here_.find({shard, role});
  return found == here_.end() ? nullptr : &found->second;
}

ShardSeats::Settled ShardSeats::settle(
    const std::optional<std::pair<KeptVersion, std::set<ShardId>>>& kept, bool waited) {
  std::map<ShardId, Role> serving;
  for (ShardId shard = 0; shard < shards_; ++shard) {
    const bool must_have = kept && kept->second.contains(shard);
    const auto has = [&](Role role) {
      const Sitter* const sitter = find(shard, role);
      return sitter != nullptr && (!must_have || std::find(sitter->kept.begin(), sitter->kept.end(),
                                                           kept->first) != sitter->kept.end());
    };
    const bool both = find(shard, Role::kShard) && find(shard, Role::kStandby);
    if (has(Role::kShard)) {
      serving[shard] = Role::kShard;
    } else if (has(Role::kStandby) && (must_have || waited)) {
      serving[shard] = Role::kStandby;
    } else if (must_have && (both || waited)) {
      return Settled::kNever;
    }
  }
  if (serving.size() < shards_) return Settled::kNotYet;
  serving_ = std::move(serving);
  return Settled::kYes;
}

std::vector<std::pair<Role, ShardId>> ShardSeats::here() const {
  std::vector<std::pair<Role, ShardId>> all;
  for (const auto& [key, sitter] : here_) all.emplace_back(key.second, key.first);
  return all;
}

}  // namespace drover

#include "coordinator/shard_assignment.h"

#include <algorithm>

namespace drover {

Status ShardAssignment::on_hello(const Hello& hello) {
  const std::string name = peer_name(hello.role, hello.index);
  if (hello.index >= shards_) return invalid_input("this run has no " + name);
  // kNotNow: the connected one may be an earlier incarnation, whose end was not noticed yet.
  if (find(hello.index, hello.role) != nullptr)
    return Error{ErrorKind::kNotNow, name + " is already connected"};
  here_[{hello.index, hello.role}] = {.address = hello.address, .kept = hello.kept};
  return done();
}

const ShardAssignment::Process* ShardAssignment::find(ShardId shard, Role role) const {
  const auto found = here_.find({shard, role});
  return found == here_.end() ? nullptr : &found->second;
}

ShardAssignment::Settled ShardAssignment::settle(
    const std::optional<std::pair<KeptVersion, std::set<ShardId>>>& kept, bool waited) {
  std::map<ShardId, Role> serving;
  for (ShardId shard = 0; shard < shards_; ++shard) {
    const bool must_have = kept && kept->second.contains(shard);
    const auto has = [&](Role role) {
      const Process* const process = find(shard, role);
      return process != nullptr &&
             (!must_have || std::find(process->kept.begin(), process->kept.end(), kept->first) !=
                                process->kept.end());
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

std::vector<std::pair<Role, ShardId>> ShardAssignment::here() const {
  std::vector<std::pair<Role, ShardId>> all;
  for (const auto& [key, process] : here_) all.emplace_back(key.second, key.first);
  return all;
}

std::vector<ShardId> ShardAssignment::missing() const {
  std::vector<ShardId> missing;
  for (ShardId shard = 0; shard < shards_; ++shard) {
    if (!find(shard, Role::kShard) && !find(shard, Role::kStandby)) missing.push_back(shard);
  }
  return missing;
}

}  // namespace drover

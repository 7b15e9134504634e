// Peer: one process of a run, by its role and its number.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace drover {

// A standby is a second process for a shard: it keeps a copy of the shard's state, and takes over
// when the shard is lost.
enum class Role : uint8_t { kCoordinator, kShard, kWorker, kEvaluator, kStandby };

// A run has one coordinator and at most one evaluator; their index is 0.
struct Peer {
  Role role = Role::kCoordinator;
  uint32_t index = 0;
  auto operator<=>(const Peer&) const = default;
};

// "coordinator", "shard", "worker", "evaluator", "standby"; and back.
std::string_view name_of(Role role);
std::optional<Role> parse_role(std::string_view name);

// The name of a peer in texts: "worker 3", "shard 0", "standby 0", "coordinator", "evaluator".
std::string name_of(const Peer& peer);
std::string peer_name(Role role, uint32_t index);

// parse_peer(name_of(peer)) is the same peer. nullopt if `name` is not the name of a peer.
std::optional<Peer> parse_peer(std::string_view name);

}  // namespace drover

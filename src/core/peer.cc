#include "core/peer.h"

#include <charconv>

namespace drover {
namespace {

constexpr Role kRoles[] = {Role::kCoordinator, Role::kShard, Role::kWorker, Role::kEvaluator,
                           Role::kStandby};

bool has_index(Role role) {
  return role == Role::kShard || role == Role::kWorker || role == Role::kStandby;
}

}  // namespace

std::string_view name_of(Role role) {
  switch (role) {
    case Role::kCoordinator:
      return "coordinator";
    case Role::kShard:
      return "shard";
    case Role::kWorker:
      return "worker";
    case Role::kEvaluator:
      return "evaluator";
    case Role::kStandby:
      return "standby";
  }
  return "peer";
}

std::optional<Role> parse_role(std::string_view name) {
  for (const Role role : kRoles) {
    if (name == name_of(role)) return role;
  }
  return std::nullopt;
}

std::string name_of(const Peer& peer) {
  std::string name(name_of(peer.role));
  if (has_index(peer.role)) name += " " + std::to_string(peer.index);
  return name;
}

std::string peer_name(Role role, uint32_t index) { return name_of(Peer{role, index}); }

std::optional<Peer> parse_peer(std::string_view name) {
  const size_t space = name.find(' ');
  const auto role = parse_role(name.substr(0, space));
  if (!role || has_index(*role) == (space == std::string_view::npos)) return std::nullopt;
  Peer peer{*role, 0};
  if (!has_index(*role)) return peer;
  const std::string_view digits = name.substr(space + 1);
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, peer.index);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return peer;
}

}  // namespace drover

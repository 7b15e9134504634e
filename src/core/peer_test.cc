#include "core/peer.h"

#include <gtest/gtest.h>

#include <limits>

namespace drover {
namespace {

TEST(Peer, NameParsesToTheSamePeer) {
  for (const Peer& peer : {Peer{Role::kCoordinator, 0}, Peer{Role::kShard, 0},
                           Peer{Role::kWorker, std::numeric_limits<uint32_t>::max()},
                           Peer{Role::kEvaluator, 0}, Peer{Role::kStandby, 12}}) {
    EXPECT_EQ(parse_peer(name_of(peer)), peer) << name_of(peer);
  }
}

TEST(Peer, OnlyRolesWithSeveralProcessesAreNumbered) {
  EXPECT_EQ(peer_name(Role::kWorker, 3), "worker 3");
  EXPECT_EQ(peer_name(Role::kCoordinator, 0), "coordinator");
}

TEST(Peer, OtherTextIsNotAPeer) {
  for (const char* text : {"", "worker", "worker ", "worker x", "worker 3 ", "worker -1",
                           "worker 4294967296", "coordinator 0", "workers 3", "launcher"}) {
    EXPECT_EQ(parse_peer(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace drover

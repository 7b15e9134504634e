// With partial pulls: the versions sent to each worker, and whether more may be sent.
#include "shard/sent_versions.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(SentVersions, SendsABlockOncePerVersion) {
  SentVersions sent(2, 1);
  EXPECT_FALSE(sent.has(0, 0, 0));
  EXPECT_TRUE(sent.may_send(0, 0, 0));
  sent.on_sent(0, 0, 0);
  EXPECT_TRUE(sent.has(0, 0, 0));
  EXPECT_FALSE(sent.has(0, 0, 1));
  EXPECT_FALSE(sent.may_send(0, 0, 0));
  EXPECT_TRUE(sent.may_send(0, 0, 1));
  EXPECT_TRUE(sent.may_send(1, 0, 0)) << "each worker is counted separately";
}

TEST(SentVersions, TwoVersionsOfAllBlocksMayBeInFlight) {
  SentVersions sent(1, 2);
  for (Version version = 0; version < 2; ++version) {
    for (size_t block = 0; block < 2; ++block) {
      ASSERT_TRUE(sent.may_send(0, block, version));
      sent.on_sent(0, block, version);
    }
  }
  EXPECT_FALSE(sent.may_send(0, 0, 2));
  sent.on_pull(0, 1);
  EXPECT_TRUE(sent.may_send(0, 0, 2));
  sent.on_sent(0, 0, 2);
  EXPECT_FALSE(sent.may_send(0, 1, 2));
}

TEST(SentVersions, NothingWasSentOnANewConnection) {
  SentVersions sent(1, 1);
  sent.on_sent(0, 0, 3);
  sent.on_sent(0, 0, 4);
  sent.on_joined(0);
  EXPECT_FALSE(sent.has(0, 0, 0));
  EXPECT_TRUE(sent.may_send(0, 0, 4));
}

TEST(SentVersions, AWorkerThatClaimsToHaveReceivedTooMuchGetsNothing) {
  SentVersions sent(1, 1);
  sent.on_pull(0, 5);
  EXPECT_FALSE(sent.may_send(0, 0, 0));
}

}  // namespace
}  // namespace drover

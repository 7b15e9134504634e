// A Welcome is accepted only if it matches the member's model.
#include "worker/welcome_check.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

const Layout kLayout({{"a", 100}, {"b", 7}});

Welcome good() {
  return {.shards = {"one", "two"}, .blocks = plan_blocks(kLayout, 2), .workers = 3, .batch = 8};
}

TEST(CheckWelcome, AcceptsAMatchingModel) {
  EXPECT_TRUE(check_welcome(good(), kLayout, WorkerId{2}).ok());
  EXPECT_TRUE(check_welcome(good(), kLayout, std::nullopt).ok());
}

TEST(CheckWelcome, RefusesBlocksOutsideTheBuffers) {
  Welcome beyond = good();
  beyond.blocks.blocks.back().offset += 1'000;
  EXPECT_FALSE(check_welcome(beyond, kLayout, WorkerId{2}).ok());
  EXPECT_FALSE(check_welcome(good(), Layout({{"a", 50}, {"b", 7}}), WorkerId{2}).ok());
  EXPECT_FALSE(check_welcome(good(), Layout({{"a", 100}}), WorkerId{2}).ok());
}

TEST(CheckWelcome, RefusesShardsWithoutAnAddress) {
  Welcome few = good();
  few.shards.pop_back();
  EXPECT_FALSE(check_welcome(few, kLayout, WorkerId{2}).ok());
  EXPECT_FALSE(check_welcome(Welcome{.workers = 3, .batch = 8}, kLayout, WorkerId{2}).ok());
}

TEST(CheckWelcome, RefusesARunWithoutThisWorker) {
  EXPECT_FALSE(check_welcome(good(), kLayout, WorkerId{3}).ok());
}

}  // namespace
}  // namespace drover

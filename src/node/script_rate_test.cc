#include "node/script_rate.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

LearningRate rate_in(const Outgoing& message) {
  return std::get<LearningRate>(std::get<Control>(message.frame.payload));
}

TEST(ScriptRate, IsSentToEveryShardWhenItChanges) {
  ScriptRate rate;
  Outbox out;
  rate.begin(0, 2, out);
  EXPECT_TRUE(out.empty()) << "the run's own rate is not sent";
  rate.set(0.5, {}, 3, 2, out);
  ASSERT_EQ(out.size(), 2u);
  for (ShardId shard = 0; shard < 2; ++shard) {
    EXPECT_EQ(out[shard].to, to_shard(shard, Lane::kControl));
    EXPECT_EQ(rate_in(out[shard]), (LearningRate{.from = 3, .rate = 0.5}));
  }
  rate.begin(4, 2, out);
  EXPECT_EQ(out.size(), 2u) << "the shards have it";
}

TEST(ScriptRate, IsSentOnceToNewShards) {
  ScriptRate rate;
  Outbox out;
  rate.on_new_shards();
  rate.begin(0, 1, out);
  EXPECT_TRUE(out.empty()) << "the script has set none";
  rate.set(0.5, {}, 3, 1, out);
  out.clear();
  rate.on_new_shards();
  rate.begin(2, 1, out);
  rate.begin(3, 1, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(rate_in(out[0]), (LearningRate{.from = 2, .rate = 0.5}));
}

}  // namespace
}  // namespace drover

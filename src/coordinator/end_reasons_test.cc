#include "coordinator/end_reasons.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

const Loss kOutOfMemory{.cause = LossCause::kReported, .detail = "out of memory"};

TEST(EndReasons, ALostServerNamesTheRemedy) {
  const Peer shard{Role::kShard, 2};
  const std::string bare = server_lost_reason(shard, kOutOfMemory, 7, "");
  EXPECT_EQ(bare.rfind("shard 2 was lost at step 7 (", 0), 0u) << bare;
  EXPECT_NE(bare.find("out of memory"), std::string::npos) << bare;
  EXPECT_NE(bare.find("use --standby"), std::string::npos) << bare;
  const std::string kept = server_lost_reason(shard, kOutOfMemory, 7, "folder");
  EXPECT_NE(kept.find("--resume folder"), std::string::npos) << kept;
  EXPECT_EQ(kept.find("--standby"), std::string::npos) << kept;
}

TEST(EndReasons, ALostRankIsNamed) {
  const std::string why = rank_lost_reason({Role::kWorker, 3}, kOutOfMemory);
  EXPECT_EQ(why.rfind("lost worker 3: ", 0), 0u) << why;
  EXPECT_NE(why.find("out of memory"), std::string::npos) << why;
}

TEST(EndReasons, DivergenceNamesTheNumberOfSteps) {
  EXPECT_EQ(diverged_reason(3).rfind("training diverged: every gradient of the last 3 steps", 0),
            0u);
}

TEST(EndReasons, AnInterruptionNamesTheStep) {
  EXPECT_EQ(interrupted_reason(7, 20), "interrupted at step 7 of 20");
  EXPECT_EQ(interrupted_reason(7, kEndless), "interrupted at step 7");
}

TEST(EndReasons, ATimeoutNamesItsDuration) {
  EXPECT_EQ(not_ready_reason(61500ms), "not all processes were ready to train within 61 s");
}

}  // namespace
}  // namespace drover

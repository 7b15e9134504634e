#include "coordinator/evaluator_presence.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST(EvaluatorPresence, IsAwaitedUntilItJoins) {
  EvaluatorPresence evaluator;
  EXPECT_TRUE(evaluator.is_awaited());
  EXPECT_FALSE(evaluator.is_here());
  EXPECT_FALSE(evaluator.lost_since());
  evaluator.on_joined();
  EXPECT_FALSE(evaluator.is_awaited());
  EXPECT_TRUE(evaluator.is_here());
  EXPECT_FALSE(evaluator.lost_since());
}

TEST(EvaluatorPresence, IsLostUntilItReturns) {
  EvaluatorPresence evaluator;
  evaluator.on_joined();
  evaluator.on_lost(3s);
  EXPECT_FALSE(evaluator.is_here());
  EXPECT_FALSE(evaluator.is_awaited()) << "a run continues without it";
  EXPECT_EQ(evaluator.lost_since(), 3s);
  evaluator.on_joined();
  EXPECT_TRUE(evaluator.is_here());
  EXPECT_FALSE(evaluator.lost_since());
}

TEST(EvaluatorPresence, MayBeGivenUpBeforeItHasJoined) {
  EvaluatorPresence evaluator;
  evaluator.on_lost(5s);
  EXPECT_FALSE(evaluator.is_awaited());
  EXPECT_EQ(evaluator.lost_since(), 5s);
}

}  // namespace
}  // namespace drover

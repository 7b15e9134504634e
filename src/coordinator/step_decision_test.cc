#include "coordinator/step_decision.h"

#include <gtest/gtest.h>

#include "coordinator/fixed_policy.h"

namespace drover {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<WorkerId>;

// Five workers, two shards that report arrivals; the step opens at 100 s.
class StepDecisionTest : public ::testing::Test {
 protected:
  explicit StepDecisionTest(const CoordinatorSettings& settings = {.batch = 8})
      : decision_(settings,
                  settings.asynchronous ? nullptr : std::make_unique<FixedPolicy>(&notes_)) {}

  DecisionRecord open(Ids available = {0, 1, 2, 3, 4}) {
    return decision_.open({.step = 0,
                           .available = std::move(available),
                           .shards = 2,
                           .noise_scale = 32.0,
                           .now = 100s},
                          members_);
  }
  // Reports arrivals on both shards; returns whether a review is due then.
  bool arrive(WorkerId worker, Duration run_time) {
    decision_.on_arrived(0, {.arrivals = {{worker, run_time, 0}}}, {});
    return decision_.on_arrived(1, {.arrivals = {{worker, run_time, 0}}}, {});
  }

  PolicyNotes notes_;
  StepDecision decision_;
  Membership members_{5};
};

TEST_F(StepDecisionTest, RecordsWhatThePolicyChooses) {
  notes_.choice = {.cutoff = 3,
                   .time_limit = 0.5,
                   .at_least = 2,
                   .reason = "three",
                   .expected = {{.rank = 1, .mean = 0.25F}},
                   .model_stale = true};
  const DecisionRecord record = open({0, 2, 3, 4});
  EXPECT_TRUE(decision_.has_policy());
  EXPECT_EQ(record.step, 0u);
  EXPECT_EQ(record.cutoff, 3u);
  EXPECT_EQ(record.alive, 5u);
  EXPECT_EQ(record.reason, "three");
  EXPECT_EQ(record.time_limit, 500ms);
  EXPECT_EQ(record.at, 0s);
  EXPECT_EQ(record.expected.size(), 1u);
  EXPECT_TRUE(record.model_stale);
  EXPECT_EQ(notes_.alive, (std::vector<Ids>{{0, 2, 3, 4}}));
  EXPECT_EQ(notes_.noise, 4.0) << "in gradients of 8 samples";
}

TEST_F(StepDecisionTest, TheCutoffIsAtMostTheRemainingWorkers) {
  notes_.choice = {.cutoff = 3, .at_least = 2, .reason = "fixed"};
  open({0, 1, 2});
  EXPECT_EQ(decision_.order(members_).cutoff, 3u);
  members_.remove(1);
  EXPECT_EQ(decision_.order(members_).cutoff, 2u)
      << "workers 3 and 4 were busy when the step opened";
  EXPECT_EQ(decision_.order(members_).at_least, 2u);
  EXPECT_EQ(decision_.order(members_).alive, (Ids{0, 2, 3, 4}));
  members_.remove(0);
  EXPECT_EQ(decision_.order(members_).at_least, 1u);
  members_.remove(2);
  EXPECT_EQ(decision_.order(members_).cutoff, 2u) << "all expected workers are lost";
}

TEST_F(StepDecisionTest, ALimitOfYearsIsNoLimit) {
  notes_.choice.time_limit = 366.0 * 24 * 3600;
  open();
  EXPECT_EQ(decision_.time_limit(), 0s);
  EXPECT_FALSE(decision_.review_at());
}

TEST_F(StepDecisionTest, TheShortestLimitIsOneNanosecond) {
  notes_.choice.time_limit = 1e-12;
  open();
  EXPECT_EQ(decision_.time_limit(), 1ns);
}

TEST_F(StepDecisionTest, NoReviewUnlessTheChoiceAsksForOne) {
  open();
  EXPECT_EQ(decision_.order(members_).report_every, 0u);
  EXPECT_FALSE(arrive(0, 1s));
  EXPECT_FALSE(decision_.review_at());
}

TEST_F(StepDecisionTest, IsReviewedWhenEnoughHaveArrivedOnAllShards) {
  notes_.choice.review.arrivals = 2;
  open();
  EXPECT_EQ(decision_.order(members_).report_every, 1u);
  EXPECT_FALSE(arrive(0, 1s));
  EXPECT_FALSE(decision_.on_arrived(0, {.arrivals = {{1, 2s, 0}}}, {})) << "on one shard of two";
  EXPECT_TRUE(decision_.on_arrived(1, {.arrivals = {{1, 3s, 0}}}, 500ms));
  notes_.revised = Choice{.cutoff = 2, .reason = "two are enough"};
  const auto again = decision_.review(0, members_, 102s);
  ASSERT_EQ(notes_.reconsidered.size(), 1u);
  EXPECT_EQ(notes_.reconsidered[0].first, 2.5) << "an arrival may be reported before the opening";
  EXPECT_EQ(notes_.reconsidered[0].second[1], 2.5) << "minus the lead of that shard";
  ASSERT_TRUE(again);
  EXPECT_EQ(again->cutoff, 2u);
  EXPECT_EQ(again->reason, "two are enough");
  EXPECT_EQ(again->at, 2s);
  EXPECT_EQ(decision_.order(members_).cutoff, 2u);
}

TEST_F(StepDecisionTest, IsReviewedAtItsTime) {
  notes_.choice.review.at = 1.5;
  open();
  EXPECT_EQ(decision_.review_at(), 101500ms);
  EXPECT_EQ(decision_.order(members_).report_every, 1u);
  EXPECT_FALSE(decision_.review(0, members_, 101500ms)) << "the choice has not changed";
  EXPECT_FALSE(decision_.review_at()) << "there is no further review";
}

TEST_F(StepDecisionTest, TheNextReviewIsLaterThanThisOne) {
  notes_.choice.review.at = 1.5;
  open();
  notes_.revised = Choice{.cutoff = 1'000, .reason = "wait", .review = {.at = 1.0}};
  EXPECT_FALSE(decision_.review(0, members_, 101500ms)) << "the order has not changed";
  EXPECT_GT(decision_.review_at(), 101500ms);
  EXPECT_LT(decision_.review_at(), 101501ms);
}

TEST_F(StepDecisionTest, ANewTimeLimitIsANewDecision) {
  notes_.choice.review.at = 1.5;
  notes_.choice.cutoff = 5;
  open();
  members_.remove(4);
  notes_.revised = Choice{.cutoff = 5, .time_limit = 4.0, .reason = "not for long"};
  const auto again = decision_.review(0, members_, 100s);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->time_limit, 4s);
  EXPECT_EQ(again->cutoff, 4u) << "one of five workers is lost";
  EXPECT_EQ(again->at, 1ns) << "zero is the decision that opened the step";
}

TEST_F(StepDecisionTest, AStepInWhichAllHaveArrivedIsNotReviewed) {
  notes_.choice.review.at = 1.5;
  open({0, 1});
  arrive(0, 1s);
  arrive(1, 1s);
  EXPECT_FALSE(decision_.review(0, members_, 101s));
  EXPECT_TRUE(notes_.reconsidered.empty());
  EXPECT_FALSE(decision_.review_at());
}

TEST_F(StepDecisionTest, PassesRunTimesToThePolicy) {
  decision_.learn({});
  decision_.learn_late(0, 2, 1500ms);
  EXPECT_EQ(notes_.learned.size(), 1u);
  EXPECT_EQ(notes_.late, (std::vector<std::tuple<Step, WorkerId, double>>{{0, 2, 1.5}}));
  EXPECT_TRUE(decision_.deal(1, members_.list()).empty()) << "no balancing";
}

class SmallBatchDecisionTest : public StepDecisionTest {
 protected:
  SmallBatchDecisionTest() : StepDecisionTest({.batch = 1}) {}
};

TEST_F(SmallBatchDecisionTest, NoiseInGradientsEqualsNoiseInSamples) {
  open();
  EXPECT_EQ(notes_.noise, 32.0);
}

class UnknownBatchDecisionTest : public StepDecisionTest {
 protected:
  UnknownBatchDecisionTest() : StepDecisionTest({.batch = 0}) {}
};

TEST_F(UnknownBatchDecisionTest, TheNoiseInGradientsIsUnknown) {
  open();
  EXPECT_EQ(notes_.noise, 0.0);
}

class BalancedDecisionTest : public StepDecisionTest {
 protected:
  BalancedDecisionTest() : StepDecisionTest({.batch = 8, .balance = BalanceSettings{}}) {}
};

TEST_F(BalancedDecisionTest, DealsEqualBatchesBeforeSpeedsAreKnown) {
  open();
  EXPECT_EQ(decision_.deal(1, members_.list()), std::vector<uint32_t>(5, 8));
}

class AsynchronousDecisionTest : public StepDecisionTest {
 protected:
  AsynchronousDecisionTest() : StepDecisionTest({.asynchronous = Asynchronous{.staleness = 3}}) {}
};

TEST_F(AsynchronousDecisionTest, AStepIsARoundOfAsManyGradientsAsWorkers) {
  const DecisionRecord record = open();
  EXPECT_FALSE(decision_.has_policy());
  EXPECT_EQ(record.cutoff, 5u);
  EXPECT_EQ(record.reason.substr(0, 4), "ssp:");
  EXPECT_NE(record.reason.find("at most 3 gradients ahead"), std::string::npos) << record.reason;
  decision_.learn({});
  decision_.learn_late(0, 0, 1s);
  EXPECT_TRUE(decision_.deal(1, members_.list()).empty());
}

TEST(StepDecision, AsynchronousRunsHaveNoBound) {
  StepDecision decision({.asynchronous = Asynchronous{}}, nullptr);
  const Membership members(2);
  const auto record = decision.open({.available = {0, 1}, .shards = 1}, members);
  EXPECT_EQ(record.reason.substr(0, 6), "async:");
  EXPECT_EQ(record.cutoff, 2u);
}

}  // namespace
}  // namespace drover

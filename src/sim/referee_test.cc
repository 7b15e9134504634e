// The referee calls wrong what is wrong, and nothing else: one step of two workers, told by hand.
#include "sim/referee.h"

#include <gtest/gtest.h>

#include "core/chance.h"
#include "core/layout.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

constexpr Party kShard{Role::kShard, 0};
constexpr Party kCoordinator{Role::kCoordinator, 0};
constexpr Party worker_end(WorkerId worker) { return {Role::kWorker, worker}; }

class RefereeTest : public ::testing::Test {
 protected:
  RefereeTest() {
    const Layout layout({{"small", 4, TensorKind::kTrained}});
    sent(kCoordinator, {Role::kShard, 0, Lane::kControl},
         control_frame(Plan{.workers = 2,
                            .steps = 2,
                            .tensors = layout.tensors(),
                            .blocks = plan_blocks(layout, 1)}));
    for (const WorkerId worker : {0u, 1u})
      sent(kShard, to_worker(worker, Lane::kControl), control_frame(Connected{}));
    const Outgoing decision{{Role::kShard, 0, Lane::kControl},
                            control_frame(Decision{.step = 0, .cutoff = 2, .alive = {0, 1}})};
    referee_.on_received(kCoordinator, decision, now_);
  }

  void sent(Party from, Address to, Frame frame) {
    referee_.on_sent(from, {to, std::move(frame)}, now_);
  }

  static FloatSlice four(float value) {
    auto buffer = std::make_shared<FloatBuffer>(4);
    std::fill(buffer->span().begin(), buffer->span().end(), value);
    return {buffer, 0, 4};
  }

  void offer(WorkerId worker, float gradient) {
    sent(worker_end(worker), {Role::kShard, 0, Lane::kControl},
         Frame{{.type = FrameType::kOffer, .step = 0, .worker = worker, .samples = 1},
               four(gradient)});
  }

  void answer(WorkerId worker, Answer answer = Answer::kAccepted, Version version = 0) {
    sent(kShard, to_worker(worker, Lane::kControl),
         Frame{{.type = FrameType::kAnswer,
                .step = 0,
                .version = version,
                .worker = worker,
                .answer = answer},
               {}});
  }

  void push(WorkerId worker) {
    offer(worker, gradient_of(worker));
    answer(worker);
  }

  void close(uint64_t samples) {
    sent(kShard, to_coordinator(),
         control_frame(StepClosed{.step = 0, .elapsed = 1s, .samples = samples}));
  }

  void publish(float value) {
    sent(kShard, to_worker(0, Lane::kBulk),
         Frame{{.type = FrameType::kParameters, .version = 1}, four(value)});
  }

  static float gradient_of(WorkerId worker) { return worker == 0 ? 1.0f : 3.0f; }

  Referee referee_{{.steps = 2, .learning_rate = 0.5, .target = [](Step, WorkerId worker) {
                      return -static_cast<double>(gradient_of(worker));
                    }}};
  TimePoint now_ = 1s;
};

TEST_F(RefereeTest, HasNothingToSayOfAStepThatIsRight) {
  push(0);
  push(1);
  close(2);
  publish(-1.0f);  // half of the mean of 1 and 3
  EXPECT_EQ(referee_.verdict(), "");
  referee_.on_run_over({.outcome = RunOutcome::kFailed, .cause = EndCause::kWorkersLost});
  EXPECT_EQ(referee_.verdict(), "");
}

TEST_F(RefereeTest, SeesAWrongMean) {
  push(0);
  push(1);
  close(2);
  publish(-2.0f);
  EXPECT_EQ(referee_.verdict(),
            "version 1 of block 0 is -2, but what was counted makes -1 (at 1.000 s)");
}

TEST_F(RefereeTest, SeesAWrongDenominator) {
  push(0);
  push(1);
  close(3);
  EXPECT_EQ(referee_.verdict(), "shard 0 divided step 0 by 3 samples, but 2 arrived (at 1.000 s)");
}

TEST_F(RefereeTest, SeesWhatIsCountedTwice) {
  push(0);
  answer(0);
  EXPECT_EQ(referee_.verdict(),
            "worker 0's gradient of block 0 for step 0 was counted twice (at 1.000 s)");
}

TEST_F(RefereeTest, SeesWhatIsCountedInAnotherStep) {
  offer(0, 1.0f);
  answer(0, Answer::kAccepted, 1);
  EXPECT_EQ(referee_.verdict(),
            "worker 0's gradient of block 0 for step 0 was counted in step 1 (at 1.000 s)");
}

TEST_F(RefereeTest, SeesAStepThatDidNotWaitForWhomItShould) {
  push(0);
  close(1);
  EXPECT_EQ(referee_.verdict(),
            "step 0 of block 0 closed with 1 gradients, without worker 1 (at 1.000 s)");
}

TEST_F(RefereeTest, DoesNotMissWhoIsLostOrHasGoneOn) {
  push(0);
  referee_.on_lost(kShard, 1, now_);
  close(1);
  EXPECT_EQ(referee_.verdict(), "");
}

TEST_F(RefereeTest, SeesAGradientOfOtherParameters) {
  offer(0, 1.5f);
  EXPECT_EQ(referee_.verdict(),
            "worker 0's gradient of block 0 for step 0 is 1.5, but on version 0 it is 1 (at 1.000 "
            "s)");
}

TEST_F(RefereeTest, SeesAnOfferThatWasNeverAnswered) {
  offer(1, 3.0f);
  referee_.on_run_over({.outcome = RunOutcome::kFailed, .cause = EndCause::kWorkersLost});
  EXPECT_EQ(referee_.verdict(),
            "worker 1 offered block 0 for step 0 and was never answered (at 0.000 s)");
}

class ProbingRefereeTest : public ::testing::Test {
 protected:
  ProbingRefereeTest() {
    const Layout layout({{"small", 4, TensorKind::kTrained}});
    const Plan plan{.workers = 2,
                    .steps = 1'000,
                    .tensors = layout.tensors(),
                    .blocks = plan_blocks(layout, 1)};
    referee_.on_sent(kCoordinator, {to_shard(0, Lane::kControl), control_frame(plan)}, 1s);
  }
  void stop(Step step, WorkerId worker) {
    referee_.on_sent(
        kCoordinator,
        {to_worker(worker, Lane::kControl), Frame{{.type = FrameType::kStop, .step = step}, {}}},
        1s);
  }
  void learn(Step step) {
    referee_.on_learned(
        {.step = step, .seconds = {1.0, 1.0}, .known = {Known::kLonger, Known::kNothing}});
  }
  void pull(WorkerId worker, Version version) {
    referee_.on_sent(
        worker_end(worker),
        {to_shard(0, Lane::kControl), Frame{{.type = FrameType::kPull, .version = version}, {}}},
        1s);
  }
  static Address to_shard(ShardId shard, Lane lane) { return {Role::kShard, shard, lane}; }
  // A step of worker 0 that is drawn for a probe, and the next that is not.
  Step drawn(bool probed, Step from) const {
    for (Step step = from;; ++step) {
      const uint64_t luck = draw({9, static_cast<uint64_t>(Purpose::kProbes), step, 0});
      if ((unit_interval(luck) < 0.5) == probed) return step;
    }
  }

  Referee referee_{{.steps = 1'000, .probe = 0.5, .probe_seed = 9, .target = [](Step, WorkerId) {
                      return 0.0;
                    }}};
};

TEST_F(ProbingRefereeTest, SeesAnOrderToStopForWhatMayBeFinished) {
  stop(drawn(false, 0), 0);
  EXPECT_EQ(referee_.verdict(), "");
  stop(drawn(true, 0), 0);
  EXPECT_NE(referee_.verdict(), "");
}

TEST_F(ProbingRefereeTest, SeesAnOrderThatEndsAProbe) {
  const Step probe = drawn(true, 0);
  learn(probe);
  const Step later = drawn(false, probe + 1);
  stop(later, 0);
  EXPECT_NE(referee_.verdict().find("while it finishes"), std::string::npos);
}

TEST_F(ProbingRefereeTest, WhoHasGoneOnMayBeStopped) {
  const Step probe = drawn(true, 0);
  learn(probe);
  pull(0, probe + 1);
  stop(drawn(false, probe + 1), 0);
  EXPECT_EQ(referee_.verdict(), "");
}

TEST_F(ProbingRefereeTest, SeesAProbeThatIsCalledSlow) {
  const Step probe = drawn(true, 0);
  learn(probe);
  learn(probe + 1);
  EXPECT_NE(referee_.verdict().find("but it finishes step"), std::string::npos);
}

TEST_F(ProbingRefereeTest, SeesALateTruthOfWhomNothingWasSaid) {
  learn(0);
  referee_.on_learned_late(0, 0);
  EXPECT_EQ(referee_.verdict(), "");
  referee_.on_learned_late(0, 1);
  EXPECT_NE(referee_.verdict(), "");
}

TEST_F(ProbingRefereeTest, SeesWorkLeftOffThatNobodyStopped) {
  stop(drawn(false, 0), 0);
  EXPECT_TRUE(referee_.on_abandoned({.step = drawn(false, 0), .worker = 0, .resumed = 900}).ok());
  EXPECT_EQ(referee_.verdict(), "");
  EXPECT_TRUE(referee_.on_abandoned({.step = drawn(false, 0), .worker = 0, .resumed = 900}).ok());
  EXPECT_NE(referee_.verdict(), "");
}

TEST_F(RefereeTest, SeesARunThatEndsForNoGoodReason) {
  referee_.on_run_over(
      {.outcome = RunOutcome::kFailed, .cause = EndCause::kJoinTimeout, .reason = "late"});
  EXPECT_EQ(referee_.verdict(), "the run failed: late (at 0.000 s)");
}

}  // namespace
}  // namespace drover

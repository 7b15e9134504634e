// The Referee finds violations, and accepts correct runs. The tests write the messages of one step
// of two workers by hand.
#include "sim/referee.h"

#include <gtest/gtest.h>

#include "core/layout.h"
#include "core/random_draw.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

constexpr Party kShard{Role::kShard, 0};
constexpr Party kCoordinator{Role::kCoordinator, 0};
constexpr Party worker_party(WorkerId worker) { return {Role::kWorker, worker}; }

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
    sent(worker_party(worker), {Role::kShard, 0, Lane::kControl},
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

TEST_F(RefereeTest, AcceptsACorrectStep) {
  push(0);
  push(1);
  close(2);
  publish(-1.0f);  // half of the mean of 1 and 3
  EXPECT_EQ(referee_.verdict(), "");
  referee_.on_run_over({.outcome = RunOutcome::kFailed, .cause = EndCause::kWorkersLost});
  EXPECT_EQ(referee_.verdict(), "");
}

TEST_F(RefereeTest, FindsAWrongMean) {
  push(0);
  push(1);
  close(2);
  publish(-2.0f);
  EXPECT_EQ(referee_.verdict(),
            "version 1 of block 0 is -2, but the counted gradients give -1 (at 1.000 s)");
}

TEST_F(RefereeTest, FindsAWrongDenominator) {
  push(0);
  push(1);
  close(3);
  EXPECT_EQ(referee_.verdict(), "shard 0 divided step 0 by 3 samples, but 2 arrived (at 1.000 s)");
}

TEST_F(RefereeTest, FindsAGradientThatIsCountedTwice) {
  push(0);
  answer(0);
  EXPECT_EQ(referee_.verdict(),
            "worker 0's gradient of block 0 for step 0 was counted twice (at 1.000 s)");
}

TEST_F(RefereeTest, FindsAGradientThatIsCountedInAnotherStep) {
  offer(0, 1.0f);
  answer(0, Answer::kAccepted, 1);
  EXPECT_EQ(referee_.verdict(),
            "worker 0's gradient of block 0 for step 0 was counted in step 1 (at 1.000 s)");
}

TEST_F(RefereeTest, FindsAStepThatClosedTooEarly) {
  push(0);
  close(1);
  EXPECT_EQ(referee_.verdict(),
            "step 0 of block 0 closed with 1 gradients, without worker 1 (at 1.000 s)");
}

TEST_F(RefereeTest, AcceptsAStepWithoutLostWorkersAndWorkersThatHaveContinued) {
  push(0);
  referee_.on_lost(kShard, 1, now_);
  close(1);
  EXPECT_EQ(referee_.verdict(), "");
}

TEST_F(RefereeTest, FindsAGradientOfOtherParameters) {
  offer(0, 1.5f);
  EXPECT_EQ(referee_.verdict(),
            "worker 0's gradient of block 0 for step 0 is 1.5, but on version 0 it is 1 (at 1.000 "
            "s)");
}

TEST_F(RefereeTest, FindsAnOfferThatWasNeverAnswered) {
  offer(1, 3.0f);
  referee_.on_run_over({.outcome = RunOutcome::kFailed, .cause = EndCause::kWorkersLost});
  EXPECT_EQ(referee_.verdict(),
            "worker 1 offered block 0 for step 0, but was never answered (at 0.000 s)");
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
        worker_party(worker),
        {to_shard(0, Lane::kControl), Frame{{.type = FrameType::kPull, .version = version}, {}}},
        1s);
  }
  static Address to_shard(ShardId shard, Lane lane) { return {Role::kShard, shard, lane}; }
  // A step in which worker 0 is drawn as a probe, and the next one in which it is not.
  Step drawn(bool probed, Step from) const {
    for (Step step = from;; ++step) {
      const uint64_t bits = draw({9, static_cast<uint64_t>(Purpose::kProbes), step, 0});
      if ((unit_interval(bits) < 0.5) == probed) return step;
    }
  }

  Referee referee_{{.steps = 1'000,
                    .stragglers = {.probe = 0.5, .probe_seed = 9},
                    .target = [](Step, WorkerId) { return 0.0; }}};
};

TEST_F(ProbingRefereeTest, FindsAStopOfAProbe) {
  stop(drawn(false, 0), 0);
  EXPECT_EQ(referee_.verdict(), "");
  stop(drawn(true, 0), 0);
  EXPECT_NE(referee_.verdict(), "");
}

TEST_F(ProbingRefereeTest, FindsAStopOfALaterStepThatEndsAProbe) {
  const Step probe = drawn(true, 0);
  learn(probe);
  const Step later = drawn(false, probe + 1);
  stop(later, 0);
  EXPECT_NE(referee_.verdict().find("while it finishes"), std::string::npos);
}

TEST_F(ProbingRefereeTest, AProbeThatHasContinuedMayBeStopped) {
  const Step probe = drawn(true, 0);
  learn(probe);
  pull(0, probe + 1);
  stop(drawn(false, probe + 1), 0);
  EXPECT_EQ(referee_.verdict(), "");
}

TEST_F(ProbingRefereeTest, FindsAProbeThatIsReportedAsSlow) {
  const Step probe = drawn(true, 0);
  learn(probe);
  learn(probe + 1);
  EXPECT_NE(referee_.verdict().find("but it finishes step"), std::string::npos);
}

TEST_F(ProbingRefereeTest, FindsALateRunTimeOfAWorkerThatWasNotReportedSlow) {
  learn(0);
  referee_.on_learned_late(0, 0);
  EXPECT_EQ(referee_.verdict(), "");
  referee_.on_learned_late(0, 1);
  EXPECT_NE(referee_.verdict(), "");
}

TEST_F(ProbingRefereeTest, FindsAbandonedWorkThatWasNotStopped) {
  stop(drawn(false, 0), 0);
  EXPECT_TRUE(referee_.on_abandoned({.step = drawn(false, 0), .worker = 0, .resumed = 900}).ok());
  EXPECT_EQ(referee_.verdict(), "");
  EXPECT_TRUE(referee_.on_abandoned({.step = drawn(false, 0), .worker = 0, .resumed = 900}).ok());
  EXPECT_NE(referee_.verdict(), "");
}

TEST(RefereeOfByzantineFaults, AllowsForMultipliedRoundingErrors) {
  const Layout layout({{"small", 4, TensorKind::kTrained}});
  const Plan plan{
      .workers = 1, .steps = 2, .tensors = layout.tensors(), .blocks = plan_blocks(layout, 1)};
  const auto verdict_on = [&](float gradient) {
    Referee referee({.steps = 2,
                     .target = [](Step, WorkerId) { return -1e-4; },
                     .gradient_factor = [](Step, WorkerId) { return 3'000.0; }});
    referee.on_sent(kCoordinator, {{Role::kShard, 0, Lane::kControl}, control_frame(plan)}, 1s);
    auto buffer = std::make_shared<FloatBuffer>(4);
    std::fill(buffer->span().begin(), buffer->span().end(), gradient);
    referee.on_sent(worker_party(0),
                    {{Role::kShard, 0, Lane::kControl},
                     Frame{{.type = FrameType::kOffer, .samples = 1}, FloatSlice{buffer, 0, 4}}},
                    1s);
    return referee.verdict();
  };
  EXPECT_EQ(verdict_on(0.3003f), "") << "the parameters may be 1e-7 instead of 0";
  EXPECT_NE(verdict_on(0.31f), "");
}

TEST_F(RefereeTest, FindsAShardThatRepeatsLateReports) {
  push(0);
  push(1);
  StepClosed closed{.step = 0, .elapsed = 1s, .samples = 2};
  for (int times = 0; times < 3; ++times) closed.late.push_back({.worker = 1, .run_time = 2s});
  sent(kShard, to_coordinator(), control_frame(closed));
  EXPECT_NE(referee_.verdict().find("reports repeatedly"), std::string::npos);
}

TEST(RefereeOfMomentum, PredictsUpdates) {
  Referee referee({.steps = 3, .learning_rate = 0.5, .momentum = 0.5, .target = [](Step, WorkerId) {
                     return -1.0;
                   }});
  const Layout layout({{"small", 4, TensorKind::kTrained}});
  const Plan plan{
      .workers = 1, .steps = 3, .tensors = layout.tensors(), .blocks = plan_blocks(layout, 1)};
  referee.on_sent(kCoordinator, {{Role::kShard, 0, Lane::kControl}, control_frame(plan)}, 1s);
  referee.on_sent(kShard, {to_worker(0, Lane::kControl), control_frame(Connected{})}, 1s);
  const auto four = [](float value) {
    auto buffer = std::make_shared<FloatBuffer>(4);
    std::fill(buffer->span().begin(), buffer->span().end(), value);
    return FloatSlice{buffer, 0, 4};
  };
  const auto step = [&](Step number, float gradient, float next) {
    const Outgoing decision{{Role::kShard, 0, Lane::kControl},
                            control_frame(Decision{.step = number, .cutoff = 1, .alive = {0}})};
    referee.on_received(kCoordinator, decision, 1s);
    referee.on_sent(
        worker_party(0),
        {{Role::kShard, 0, Lane::kControl},
         Frame{{.type = FrameType::kOffer, .step = number, .samples = 1}, four(gradient)}},
        1s);
    referee.on_sent(kShard,
                    {to_worker(0, Lane::kControl), Frame{{.type = FrameType::kAnswer,
                                                          .step = number,
                                                          .version = number,
                                                          .answer = Answer::kAccepted},
                                                         {}}},
                    1s);
    referee.on_sent(kShard,
                    {to_worker(0, Lane::kBulk),
                     Frame{{.type = FrameType::kParameters, .version = number + 1}, four(next)}},
                    1s);
  };
  step(0, 1.0f, -0.5f);
  step(1, 0.5f, -1.0f);  // the second momentum is half of the first plus 0.5
  EXPECT_EQ(referee.verdict(), "");
  step(2, 0.0f, -1.0f);
  EXPECT_NE(referee.verdict(), "") << "without momentum the parameters would not change";
}

TEST(RefereeOfScripts, FindsARunThatEndsBeforeScriptsHaveLeft) {
  const auto say = [](Referee& referee, Address to, TimePoint now) {
    referee.on_sent(kCoordinator, {to, control_frame(Farewell{})}, now);
  };
  const Address shard{Role::kShard, 0, Lane::kControl};
  Referee referee({.scripts = true});
  say(referee, to_worker(0, Lane::kControl), 1s);
  say(referee, to_worker(1, Lane::kControl), 1s);
  referee.on_received(worker_party(0), {to_coordinator(), control_frame(Farewell{})}, 2s);
  referee.on_lost(kCoordinator, 1, 2s);
  say(referee, shard, 2s);
  EXPECT_EQ(referee.verdict(), "");
  Referee patient({.scripts = true});
  say(patient, to_worker(0, Lane::kControl), 1s);
  say(patient, shard, 9s);
  EXPECT_EQ(patient.verdict(), "");
  Referee hasty({.scripts = true});
  say(hasty, to_worker(0, Lane::kControl), 1s);
  say(hasty, shard, 2s);
  EXPECT_NE(hasty.verdict(), "");
}

TEST_F(RefereeTest, FindsARunThatFailsWithoutAFault) {
  referee_.on_run_over(
      {.outcome = RunOutcome::kFailed, .cause = EndCause::kJoinTimeout, .reason = "late"});
  EXPECT_EQ(referee_.verdict(), "the run failed: late (at 0.000 s)");
}

}  // namespace
}  // namespace drover

// The ledger summarises each step once, completely and in order, and marks workers that were not
// seen to arrive as censored.
#include "coordinator/step_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace drover {
namespace {

using namespace std::chrono_literals;

StepClosed closed_by(Step step, Duration elapsed, std::vector<StepClosed::Arrival> arrivals) {
  StepClosed closed;
  closed.step = step;
  closed.elapsed = elapsed;
  closed.arrivals = std::move(arrivals);
  closed.samples = 10;
  return closed;
}

TEST(StepLedger, SummarisesAStepWhenClosingsAndReportsAreIn) {
  StepLedger ledger(2);
  ledger.open(0, 1s, {0, 1}, 0.1);
  EXPECT_FALSE(ledger.on_closed(0, closed_by(0, 30ms, {{0, 10ms, 0}, {1, 30ms, 0}}), 1030ms));
  ledger.on_report(
      0, {.step = 0, .samples = 10, .loss = 1.0, .correct = 5, .predictions = 10, .compute = 9ms});
  EXPECT_TRUE(ledger.on_closed(1, closed_by(0, 40ms, {{0, 12ms, 0}, {1, 20ms, 0}}), 1040ms));
  EXPECT_TRUE(ledger.take_summaries().empty()) << "worker 1 has not reported yet";
  ledger.on_report(
      1,
      {.step = 0, .samples = 30, .loss = 2.0, .correct = 15, .predictions = 30, .compute = 19ms});
  const auto summaries = ledger.take_summaries();
  ASSERT_EQ(summaries.size(), 1u);
  const StepRecord& step = summaries[0].step;
  EXPECT_EQ(step.elapsed, 40ms);
  EXPECT_EQ(step.contributors, 2u);
  EXPECT_DOUBLE_EQ(step.loss, 1.75) << "weighted by samples";
  EXPECT_DOUBLE_EQ(step.accuracy, 0.5);
  EXPECT_EQ(step.last_worker, 1u);
  ASSERT_EQ(summaries[0].arrivals.size(), 2u);
  EXPECT_EQ(summaries[0].arrivals[0].run_time, 12ms)
      << "a worker has arrived when its last block has";
  EXPECT_EQ(summaries[0].arrivals[1].run_time, 30ms);
  EXPECT_EQ(summaries[0].arrivals[1].compute, 19ms);
}

TEST(StepLedger, AddsUpSignalAndNoiseOfAllShards) {
  StepLedger ledger(2);
  for (Step step = 0; step < 12; ++step) {
    ledger.open(step, 1s, {}, 0.1);
    StepClosed first = closed_by(step, 1ms, {});
    first.signal = 1.5;
    first.noise = 8.0;
    first.closing = 5ms;
    first.undecided = 1ms;
    StepClosed second = closed_by(step, 1ms, {});
    second.signal = 0.5;
    second.closing = 3ms;
    second.undecided = 2ms;
    second.noise = step == 5 ? std::nan("") : 2.0;
    ledger.on_closed(0, first, 1s);
    ledger.on_closed(1, second, 1s);
    const StepRecord record = ledger.take_summaries().at(0).step;
    EXPECT_EQ(record.closing, 5ms) << "of the slowest shard";
    EXPECT_EQ(record.undecided, 2ms);
    EXPECT_DOUBLE_EQ(record.signal, 2.0);
    if (step == 5) {
      EXPECT_TRUE(std::isnan(record.noise));
    } else {
      EXPECT_DOUBLE_EQ(record.noise, 10.0);
    }
    // Ten steps, without the one in which it could not be measured.
    EXPECT_EQ(std::isnan(record.noise_scale), step < 10);
    if (step >= 10) {
      EXPECT_DOUBLE_EQ(record.noise_scale, 5.0);
    }
    EXPECT_DOUBLE_EQ(ledger.noise_scale(), step < 10 ? 0.0 : 5.0);
  }
}

TEST(StepLedger, AWorkerMissingOnOneShardIsCensoredAtTheTimeThatShardClosed) {
  StepLedger ledger(2);
  ledger.open(0, 0s, {0, 1}, 0.1);
  ledger.on_closed(0, closed_by(0, 30ms, {{0, 10ms, 0}, {1, 25ms, 0}}), 30ms);
  ledger.on_closed(1, closed_by(0, 20ms, {{0, 12ms, 0}}), 31ms);
  EXPECT_EQ(ledger.stragglers(0), std::vector<WorkerId>{1});
  ledger.on_report(0, {.step = 0, .samples = 1, .loss = 1.0});
  const auto summaries = ledger.take_summaries();
  ASSERT_EQ(summaries.size(), 1u);
  EXPECT_EQ(summaries[0].step.contributors, 1u);
  EXPECT_TRUE(summaries[0].arrivals[1].censored);
  EXPECT_EQ(summaries[0].arrivals[1].run_time, 25ms) << "a lower bound: the longest time seen";
}

TEST(StepLedger, AGradientThatWasTooLateForSomeBlocksHasItsTrueRunTime) {
  StepLedger ledger(2);
  ledger.open(0, 0s, {0, 1}, 0.1);
  ledger.on_closed(0, closed_by(0, 90ms, {{0, 90ms, 0}, {1, 25ms, 0}}), 90ms);
  StepClosed closed = closed_by(0, 90ms, {{0, 90ms, 0}});
  closed.late = {{1, 30ms, 0}};
  ledger.on_closed(1, closed, 90ms);
  EXPECT_EQ(ledger.stragglers(0), std::vector<WorkerId>{1});
  const StepTimes times = ledger.times(0, 2);
  EXPECT_EQ(times.known[1], Known::kLonger);
  EXPECT_DOUBLE_EQ(times.seconds[1], 0.030);
  EXPECT_TRUE(ledger.take_late().empty()) << "its run-time is reported with the next step";
  ledger.open(1, 90ms, {0, 1}, 0.1);
  StepClosed next = closed_by(1, 10ms, {{0, 10ms, 1}});
  next.late = {{1, 30ms, 0}};
  ledger.on_closed(1, next, 100ms);
  const auto late = ledger.take_late();
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].run_time, 30ms);
}

TEST(StepLedger, KeepsAReportThatArrivesBeforeItsStepOpens) {
  StepLedger ledger(1);
  ledger.open(0, 0s, {0}, 0.1);
  ledger.on_report(0, {.step = 0, .samples = 1, .loss = 1.0});
  ledger.on_report(0, {.step = 1, .samples = 1, .loss = 2.0});  // before the closing of step 0
  ledger.on_closed(0, closed_by(0, 10ms, {{0, 10ms, 0}}), 10ms);
  ledger.open(1, 10ms, {0}, 0.1);
  ledger.on_closed(0, closed_by(1, 10ms, {{0, 10ms, 1}}), 20ms);
  const auto summaries = ledger.take_summaries();
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_DOUBLE_EQ(summaries[1].step.loss, 2.0);
}

TEST(StepLedger, DoesNotWaitForeverForReports) {
  StepLedger ledger(1);
  for (Step step = 0; step <= StepLedger::kReportPatience; ++step) {
    EXPECT_TRUE(ledger.take_summaries().empty()) << "a report may still be on its way";
    ledger.open(step, 10ms * step, {0}, 0.1);
    ledger.on_closed(0, closed_by(step, 10ms, {{0, 10ms, step}}), 10ms * (step + 1));
  }
  const auto summaries = ledger.take_summaries();
  ASSERT_EQ(summaries.size(), 1u);
  EXPECT_EQ(summaries[0].step.step, 0u);
  EXPECT_EQ(ledger.take_summaries(true).size(), StepLedger::kReportPatience)
      << "at the end, everything closed is returned";
}

TEST(StepLedger, KnowsTheRunTimeOfALateGradientWhenAllBlocksHaveArrived) {
  StepLedger ledger(2);
  ledger.open(0, 0s, {0, 3}, 0.1);
  ledger.on_closed(0, closed_by(0, 10ms, {{0, 5ms, 0}}), 10ms);
  ledger.on_closed(1, closed_by(0, 10ms, {{0, 5ms, 0}}), 10ms);
  ledger.take_summaries(true);
  ledger.open(1, 10ms, {0, 3}, 0.1);
  StepClosed first = closed_by(1, 10ms, {{0, 5ms, 1}});
  first.late = {{3, 80ms, 0}};
  ledger.on_closed(0, first, 20ms);
  EXPECT_TRUE(ledger.take_late().empty()) << "it has not arrived on the other shard";
  StepClosed second = closed_by(1, 10ms, {{0, 5ms, 1}});
  second.late = {{3, 60ms, 0}};
  ledger.on_closed(1, second, 20ms);
  const auto late = ledger.take_late();
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].worker, 3u);
  EXPECT_EQ(late[0].step, 0u);
  EXPECT_EQ(late[0].run_time, 80ms);
  EXPECT_EQ(ledger.take_summaries(true)[0].step.late, 1u) << "one gradient was late, not two";
}

TEST(StepLedger, ARefusedGradientHasArrivedButDoesNotContribute) {
  StepLedger ledger(1);
  ledger.open(0, 0s, {0, 1}, 0.1);
  StepClosed closed = closed_by(0, 10ms, {{0, 10ms, 0}, {1, 5ms, 0}});
  closed.refused = {{1, 4}, {1, 5}};
  ledger.on_closed(0, closed, 10ms);
  const auto summaries = ledger.take_summaries(true);
  EXPECT_EQ(summaries[0].step.contributors, 1u);
  EXPECT_EQ(summaries[0].step.refused, 1u);
  EXPECT_FALSE(summaries[0].arrivals[1].censored);
}

TEST(StepLedger, ARoundTakesAsManyReportsAsItHasGradients) {
  StepLedger ledger(2, /*asynchronous=*/true);
  ledger.open(0, 0s, {0, 1}, 0.1);
  ledger.on_report(1, {.step = 4, .samples = 10, .loss = 1.0, .compute = 3ms});
  ledger.on_report(1, {.step = 5, .samples = 10, .loss = 2.0, .compute = 4ms});
  ledger.on_report(0, {.step = 9, .samples = 10, .loss = std::nan("")});
  StepClosed closed = closed_by(0, 10ms, {{1, 7ms, 0}});
  closed.gradients = 3;
  EXPECT_FALSE(ledger.on_closed(0, closed, 10ms));
  closed.arrivals.clear();  // there it was in the round before
  EXPECT_TRUE(ledger.on_closed(1, closed, 11ms));
  EXPECT_TRUE(ledger.take_summaries().empty()) << "one more is on its way";
  ledger.on_report(0, {.step = 0, .samples = 10, .loss = 6.0});
  const auto summaries = ledger.take_summaries();
  ASSERT_EQ(summaries.size(), 1u);
  EXPECT_EQ(summaries[0].step.contributors, 3u);
  EXPECT_DOUBLE_EQ(summaries[0].step.loss, 3.0) << "the NaN belongs to a refused gradient";
  ASSERT_EQ(summaries[0].arrivals.size(), 1u) << "no worker is censored";
  EXPECT_EQ(summaries[0].arrivals[0].run_time, 7ms);
  EXPECT_EQ(summaries[0].arrivals[0].compute, 4ms);
}

TEST(StepLedger, ADroppedGradientAndItsReportAreInNoRound) {
  StepLedger ledger(1, /*asynchronous=*/true);
  ledger.open(0, 0s, {0, 1, 2}, 0.1);
  ledger.on_report(0, {.step = 0, .samples = 10, .loss = 1.0});
  ledger.on_report(1, {.step = 0, .samples = 10, .loss = 50.0});
  ledger.on_report(2, {.step = 0, .samples = 10, .loss = 2.0});
  StepClosed closed = closed_by(0, 10ms, {{0, 7ms, 0}, {2, 8ms, 0}});
  closed.gradients = 2;
  closed.outliers = {{.worker = 1, .blocks = 1, .ratio = 50.0, .used = false}};
  ledger.on_closed(0, closed, 10ms);
  const auto summaries = ledger.take_summaries();
  ASSERT_EQ(summaries.size(), 1u);
  EXPECT_DOUBLE_EQ(summaries[0].step.loss, 1.5);
}

// With partial pulls a step may be advanced before the last shard has closed it.
TEST(StepLedger, AfterAnAdvanceTheLastShardMayAddStragglers) {
  StepLedger ledger(2, /*asynchronous=*/false, {0, 1});
  ledger.open(0, 0s, {0, 1, 2}, 0.1);
  ledger.on_closed(0, closed_by(0, 20ms, {{0, 10ms, 0}, {2, 15ms, 0}}), 20ms);
  EXPECT_TRUE(ledger.is_closed_on(0, 0));
  EXPECT_FALSE(ledger.is_closed_on(0, 1));
  ledger.advance(0, 21ms);
  EXPECT_EQ(ledger.stragglers(0), std::vector<WorkerId>{1}) << "as far as is known";
  EXPECT_EQ(ledger.steps_open_before(1), 1u);
  EXPECT_FALSE(ledger.everything_closed());
  StepClosed last = closed_by(0, 30ms, {{0, 11ms, 0}, {1, 30ms, 0}});
  last.late = {};
  EXPECT_TRUE(ledger.on_closed(1, last, 31ms));
  EXPECT_TRUE(ledger.everything_closed());
  EXPECT_TRUE(ledger.take_late().empty()) << "worker 1 is still missing on shard 0";
  EXPECT_EQ(ledger.stragglers(0), (std::vector<WorkerId>{1, 2}));
  ledger.open(1, 31ms, {0, 1, 2}, 0.1);
  StepClosed next = closed_by(1, 10ms, {{0, 1ms, 1}});
  next.late = {{1, 50ms, 0}};
  ledger.on_closed(0, next, 60ms);
  next.late = {{2, 45ms, 0}};
  ledger.on_closed(1, next, 60ms);
  const auto late = ledger.take_late();
  ASSERT_EQ(late.size(), 2u);
  EXPECT_EQ(late[0].worker, 1u);
  EXPECT_FALSE(late[0].was_busy);
  EXPECT_EQ(late[1].worker, 2u);
  EXPECT_TRUE(late[1].was_busy) << "policies never saw it as a straggler";
  const auto summaries = ledger.take_summaries(true);
  EXPECT_EQ(summaries.at(0).step.elapsed, 21ms) << "until it was advanced";
  EXPECT_EQ(summaries.at(1).step.late, 0u);
  EXPECT_EQ(summaries.at(0).step.late, 2u);
}

TEST(StepLedger, ALostWorkerIsNotCensored) {
  StepLedger ledger(1);
  ledger.open(0, 0s, {0, 1, 3}, 0.1);
  ledger.on_lost(1);
  ledger.on_closed(0, closed_by(0, 10ms, {{0, 4ms, 0}}), 10ms);
  const StepTimes times = ledger.times(0, 4);
  EXPECT_EQ(times.known, (std::vector<Known>{Known::kArrived, Known::kNothing, Known::kNothing,
                                             Known::kLonger}));
  EXPECT_EQ(times.seconds[0], 0.004);
  EXPECT_EQ(times.seconds[3], 0.01);
  EXPECT_EQ(times.elapsed, 0.01);
  EXPECT_EQ(times.contributors, 1u);
}

TEST(StepLedger, FindsArrivalsInAnyOrder) {
  StepLedger ledger(1);
  ledger.open(0, 0s, {0, 1, 2}, 0.1);
  ledger.on_closed(0, closed_by(0, 10ms, {{2, 1ms, 0}, {0, 2ms, 0}, {1, 3ms, 0}}), 10ms);
  EXPECT_TRUE(ledger.stragglers(0).empty());
  EXPECT_EQ(ledger.times(0, 3).seconds, (std::vector<double>{0.002, 0.003, 0.001}));
}

// The shard with the last layers receives its gradients first, so it closes first and opens the
// next step first. Workers start on that step when the other shard has closed, too.
TEST(StepLedger, CountsRunTimesFromTheLastOpening) {
  StepLedger ledger(2);
  ledger.open(0, 0s, {0, 1}, 0.1);
  EXPECT_EQ(ledger.lead(0), 0s) << "all shards open step 0 together";
  ledger.on_closed(0, closed_by(0, 60ms, {{0, 60ms, 0}, {1, 50ms, 0}}), 60ms);
  ledger.on_closed(1, closed_by(0, 100ms, {{0, 100ms, 0}, {1, 80ms, 0}}), 100ms);
  ledger.open(1, 100ms, {0, 1}, 0.1);
  EXPECT_EQ(ledger.lead(0), 40ms);
  EXPECT_EQ(ledger.lead(1), 0s);
  // Worker 0 computes for 20 ms and has its last layers after 12; worker 1 has arrived nowhere.
  ledger.on_closed(0, closed_by(1, 52ms, {{0, 52ms, 1}}), 112ms);
  ledger.on_closed(1, closed_by(1, 20ms, {{0, 20ms, 1}}), 120ms);
  const StepTimes times = ledger.times(1, 2);
  EXPECT_DOUBLE_EQ(times.seconds[0], 0.020);
  EXPECT_DOUBLE_EQ(times.elapsed, 0.020);
  EXPECT_EQ(times.known[1], Known::kLonger);
  EXPECT_DOUBLE_EQ(times.seconds[1], 0.020);
  // When the straggler's gradient is complete, its run-time is measured in the same way.
  ledger.open(2, 120ms, {0, 1}, 0.1);
  StepClosed first = closed_by(2, 30ms, {{0, 30ms, 2}, {1, 30ms, 2}});
  first.late = {{1, 75ms, 1}};
  ledger.on_closed(0, first, 142ms);
  StepClosed second = closed_by(2, 30ms, {{0, 30ms, 2}, {1, 30ms, 2}});
  second.late = {{1, 38ms, 1}};
  ledger.on_closed(1, second, 150ms);
  const auto late = ledger.take_late();
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].run_time, 38ms);
}

TEST(StepLedger, NothingIsLearnedOfBusyWorkers) {
  StepLedger ledger(1);
  ledger.open(0, 0s, {0, 1, 2}, 0.1);
  ledger.on_busy(1);
  ledger.on_busy(2);
  ledger.on_closed(0, closed_by(0, 10ms, {{0, 5ms, 0}, {2, 8ms, 0}}), 10ms);
  const StepTimes times = ledger.times(0, 3);
  EXPECT_EQ(times.known, (std::vector<Known>{Known::kArrived, Known::kNothing, Known::kArrived}));
  const auto summaries = ledger.take_summaries(true);
  ASSERT_EQ(summaries.at(0).arrivals.size(), 3u);
  EXPECT_TRUE(summaries[0].arrivals[1].censored) << "it is not known to have arrived";
  EXPECT_EQ(summaries[0].arrivals[1].run_time, 10ms);
  ledger.open(1, 10ms, {0, 1, 2}, 0.1);
  StepClosed next = closed_by(1, 10ms, {{0, 5ms, 1}});
  next.late = {{1, 17ms, 0}};
  ledger.on_closed(0, next, 20ms);
  EXPECT_EQ(ledger.times(1, 3).known[1], Known::kLonger) << "another step";
  const auto late = ledger.take_late();
  ASSERT_EQ(late.size(), 1u);
  EXPECT_TRUE(late[0].was_busy);
}

TEST(StepLedger, RecordsSamplesAndComputingTimeOfReports) {
  StepLedger ledger(1);
  ledger.open(0, 0s, {0, 1, 2}, 0.1);
  ledger.on_report(0, {.step = 0, .samples = 10, .compute = 4ms});
  ledger.on_report(1, {.step = 0, .samples = 20, .compute = 9ms});  // before the step has closed
  ledger.on_closed(0, closed_by(0, 10ms, {{0, 5ms, 0}}), 10ms);
  const auto summaries = ledger.take_summaries();
  ASSERT_EQ(summaries.size(), 1u);
  EXPECT_EQ(summaries[0].arrivals[0].samples, 10u);
  EXPECT_EQ(summaries[0].arrivals[1].samples, 20u);
  EXPECT_EQ(summaries[0].arrivals[2].samples, 0u);
  ledger.open(1, 10ms, {0, 1, 2}, 0.1);
  ledger.on_report(2, {.step = 0, .samples = 30, .compute = 14ms});  // after its summary was taken
  StepClosed next = closed_by(1, 10ms, {{0, 5ms, 1}});
  next.late = {{1, 12ms, 0}, {2, 17ms, 0}};
  ledger.on_closed(0, next, 20ms);
  const auto late = ledger.take_late_records();
  ASSERT_EQ(late.size(), 2u);
  EXPECT_EQ(late[0].samples, 20u);
  EXPECT_EQ(late[0].compute, 9ms);
  EXPECT_EQ(late[1].samples, 30u);
  EXPECT_EQ(late[1].compute, 14ms);
  EXPECT_EQ(late[1].run_time, 17ms);
}

TEST(StepLedger, ALateGradientIsRecordedWhenItsReportIsInAndLearnedAtOnce) {
  StepLedger ledger(1);
  ledger.open(0, 0s, {0, 1, 2}, 0.1);
  ledger.on_closed(0, closed_by(0, 10ms, {{0, 5ms, 0}}), 10ms);
  ledger.open(1, 10ms, {0, 1, 2}, 0.1);
  StepClosed next = closed_by(1, 10ms, {{0, 5ms, 1}});
  next.late = {{1, 12ms, 0}, {2, 13ms, 0}};
  ledger.on_closed(0, next, 20ms);
  EXPECT_EQ(ledger.take_late().size(), 2u);
  EXPECT_TRUE(ledger.take_late_records().empty());
  ledger.on_report(1, {.step = 0, .samples = 20, .compute = 9ms});
  const auto late = ledger.take_late_records();
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].run_time, 12ms);
  EXPECT_EQ(late[0].samples, 20u);
  ledger.on_report(1, {.step = 0, .samples = 20, .compute = 9ms});
  EXPECT_TRUE(ledger.take_late_records().empty()) << "once";
  EXPECT_TRUE(ledger.take_late().empty());
  // A worker that died between its push and its report never sends the report.
  const auto rest = ledger.take_late_records(/*all=*/true);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].worker, 2u);
  EXPECT_EQ(rest[0].samples, 0u);
}

TEST(StepLedger, ForgetsStragglersThatNeverArrive) {
  StepLedger ledger(1);
  size_t most = 0;
  for (Step step = 0; step < 1'000; ++step) {
    ledger.open(step, Duration(step * 100), {0, 1}, 0.1);
    ledger.on_closed(0, closed_by(step, 10ns, {{0, 10ns, step}}), Duration(step * 100 + 10));
    ledger.take_summaries(true);
    most = std::max(most, ledger.pending());
  }
  EXPECT_LE(most, StepLedger::kStepsRemembered + 3);
}

// In any order of closings and reports, each step is summarised exactly once, in order, with the
// same content.
TEST(StepLedger, SummarisesEachStepOnceInAnyOrder) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const uint32_t shards = 1 + static_cast<uint32_t>(random() % 4);
    StepLedger ledger(shards);
    std::vector<StepSummary> summaries;
    for (Step step = 0; step < 20; ++step) {
      ledger.open(step, Duration(step * 100), {0, 1, 2}, 0.1);
      std::vector<int> events;  // shards, then reports as -1 - worker
      for (uint32_t shard = 0; shard < shards; ++shard) events.push_back(static_cast<int>(shard));
      for (int worker = 0; worker < 3; ++worker) events.push_back(-1 - worker);
      std::shuffle(events.begin(), events.end(), random);
      for (const int event : events) {
        if (event >= 0) {
          ledger.on_closed(static_cast<ShardId>(event),
                           closed_by(step, 10ns, {{0, 1ns, step}, {1, 2ns, step}, {2, 3ns, step}}),
                           Duration(step * 100 + 10));
        } else {
          ledger.on_report(static_cast<WorkerId>(-1 - event),
                           {.step = step, .samples = 4, .loss = double(step)});
        }
        for (StepSummary& summary : ledger.take_summaries())
          summaries.push_back(std::move(summary));
      }
    }
    ASSERT_EQ(summaries.size(), 20u);
    for (Step step = 0; step < 20; ++step) {
      ASSERT_EQ(summaries[step].step.step, step);
      ASSERT_EQ(summaries[step].step.contributors, 3u);
      ASSERT_DOUBLE_EQ(summaries[step].step.loss, static_cast<double>(step));
      ASSERT_EQ(summaries[step].step.last_worker, 2u);
    }
  }
}

TEST(StepLedger, ARoundDropsTheReportOfAnOutlier) {
  StepLedger ledger(1, /*asynchronous=*/true);
  ledger.open(0, 0s, {0, 1, 2}, 0.1);
  ledger.on_report(0, {.step = 0, .samples = 10, .loss = 1.0});
  ledger.on_report(1, {.step = 0, .samples = 10, .loss = 100.0});
  ledger.on_report(2, {.step = 0, .samples = 10, .loss = 3.0});
  StepClosed closed = closed_by(0, 10ms, {{0, 7ms, 0}, {1, 8ms, 0}, {2, 9ms, 0}});
  closed.gradients = 2;
  closed.outliers = {{.worker = 1, .block = 0, .blocks = 1, .ratio = 50.0, .used = false}};
  ledger.on_closed(0, closed, 10ms);
  const auto summaries = ledger.take_summaries();
  ASSERT_EQ(summaries.size(), 1u);
  EXPECT_DOUBLE_EQ(summaries[0].step.loss, 2.0);
}

}  // namespace
}  // namespace drover

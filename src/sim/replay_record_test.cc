#include "sim/replay_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "policy/simple.h"
#include "store/test_run.h"

namespace drover {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A step of 2 s with two of three workers; the third one is absent.
struct Sample {
  Choice choice{.cutoff = 2, .reason = "two, \"surely\""};
  StepTimes seen{
      .step = 0,
      .seconds = {1.0, 2.0, 2.0, 0.0, 2.0},
      .known = {Known::kArrived, Known::kArrived, Known::kArrived, Known::kNothing, Known::kLonger},
      .elapsed = 2.0,
      .contributors = 2};
  std::vector<bool> included{true, true, false, false, false};
  ReplayedStep step(Step number) const {
    return {.step = number,
            .alive = 4,
            .choice = choice,
            .close = {2, 2.0},
            .best = {1, 1.0},
            .seen = seen,
            .included = included,
            .late = {}};
  }
};

TEST(DecisionsFile, HasARowForEachDecision) {
  const TempFolder folder;
  const Sample sample;
  auto file = DecisionsFile::create(folder.file("d.csv"));
  ASSERT_TRUE(file.ok());
  DROVER_EXPECT_OK(file.value()->add("static:2", 100, sample.step(0)));
  DROVER_EXPECT_OK(file.value()->add("static:2", 100, sample.step(1)));
  DROVER_EXPECT_OK(file.value()->close());
  EXPECT_EQ(content_of(folder.file("d.csv")),
            "step,policy,cutoff,elapsed,oracle_cutoff,reason\n"
            "100,static:2,2,2,1,\"two, \"\"surely\"\"\"\n"
            "101,static:2,2,2,1,\"two, \"\"surely\"\"\"\n");
}

TEST(DecisionsFile, ReportsAFailedWrite) {
  const TempFolder folder;
  EXPECT_THAT(DecisionsFile::create(folder.file("no/d.csv")).error().message,
              HasSubstr("no/d.csv"));
  auto full = DecisionsFile::create("/dev/full");
  ASSERT_TRUE(full.ok());
  EXPECT_THAT(full.value()->close().error().message, HasSubstr("No space left"));
}

TEST(ReplayRecorder, RecordsAStepLikeARealRun) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const Sample sample;
  {
    const auto writer = writer_at(path);
    ReplayRecorder recorder(*writer, 0.5);
    DROVER_EXPECT_OK(recorder.add(sample.step(0)));
    DROVER_EXPECT_OK(recorder.add(sample.step(1)));
    DROVER_EXPECT_OK(recorder.finish());
  }
  const RunReader reader = reader_at(path);
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kCompleted);
  EXPECT_EQ(reader.end().value().elapsed, 5s) << "including the overhead";
  const auto steps = reader.steps().value();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].at, 2500ms);
  EXPECT_EQ(steps[1].elapsed, 2s);
  EXPECT_EQ(steps[1].contributors, 2u);
  EXPECT_EQ(steps[1].last_worker, 1u);
  EXPECT_TRUE(std::isnan(steps[1].loss));
  EXPECT_EQ(reader.decisions().value()[0].reason, sample.choice.reason);
  EXPECT_EQ(reader.decisions().value()[0].alive, 4u);
  const auto arrivals = reader.arrivals(0, 1).value();
  ASSERT_EQ(arrivals.size(), 4u);
  EXPECT_FALSE(arrivals[1].arrival.censored || arrivals[1].late);
  EXPECT_TRUE(arrivals[2].late) << "it arrived at the time of the close, beyond the cutoff";
  EXPECT_EQ(arrivals[2].arrival.run_time, 2s);
  EXPECT_EQ(arrivals[3].arrival.worker, 4u);
  EXPECT_TRUE(arrivals[3].arrival.censored);
  EXPECT_EQ(arrivals[3].arrival.run_time, 2s);
}

TEST(ReplayRecorder, RecordsProbesAsLateArrivals) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const Sample sample;
  const std::vector<LateArrival> late = {{.step = 0, .worker = 4, .run_time = 3.5}};
  {
    const auto writer = writer_at(path);
    ReplayRecorder recorder(*writer, 0.0);
    DROVER_EXPECT_OK(recorder.add(sample.step(0)));
    ReplayedStep second = sample.step(1);
    second.late = late;
    DROVER_EXPECT_OK(recorder.add(second));
    DROVER_EXPECT_OK(recorder.finish());
  }
  const RunReader reader = reader_at(path);
  const auto arrivals = reader.arrivals(0, 1).value();
  EXPECT_TRUE(arrivals[3].late);
  EXPECT_FALSE(arrivals[3].arrival.censored);
  EXPECT_EQ(arrivals[3].arrival.run_time, 3500ms);
  EXPECT_EQ(reader.steps().value()[1].late, 2u) << "one at the time of the close, one probe";
}

TEST(ReplayRecorder, RefusesTimesThatAreTooLarge) {
  Trace trace{.path = "ns.csv", .workers = {"w0", "w1"}, .times = {1e9, 2e9}};
  EXPECT_TRUE(check_can_be_saved(trace, 0.0).ok());
  trace.times = {1e9, 5e9};
  const Status status = check_can_be_saved(trace, 0.0);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("larger unit"));
}

}  // namespace
}  // namespace drover

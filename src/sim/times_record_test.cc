#include "sim/times_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/test_run.h"

namespace drover {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Three steps of `workers` workers that take 1, 2, ... ms. The last worker is censored except in
// step 0.
std::string make_run(const TempFolder& folder, const std::string& name, uint32_t workers) {
  const auto writer = writer_at(folder.file(name));
  for (Step step = 0; step < 3; ++step) {
    std::vector<ArrivalRecord> arrivals = sample_arrivals(step, workers);
    arrivals.back().censored = step != 0;
    DROVER_EXPECT_OK(writer->on_step(sample_step(step, workers - 1), arrivals));
  }
  DROVER_EXPECT_OK(writer->on_late_arrival({.step = 1, .worker = workers - 1, .run_time = 50ms}));
  DROVER_EXPECT_OK(writer->on_end({}));
  return folder.file(name);
}

TEST(TimesRecord, ARunFileHasBoundsForCensoredTimes) {
  const TempFolder folder;
  const auto record = read_record(make_run(folder, "run.db", 3));
  ASSERT_TRUE(record.ok()) << record.error().message;
  EXPECT_EQ(record.value().workers, 3u);
  ASSERT_EQ(record.value().steps.size(), 3u);
  const StepTimes& late = record.value().steps[1];
  EXPECT_EQ(late.known, (std::vector<Known>{Known::kArrived, Known::kArrived, Known::kArrived}));
  EXPECT_EQ(late.seconds, (std::vector<double>{0.001, 0.002, 0.05}));
  EXPECT_EQ(late.contributors, 2u);
  EXPECT_EQ(late.elapsed, 0.002) << "the step did not wait for the late worker";
  const StepTimes& cut = record.value().steps[2];
  EXPECT_EQ(cut.known[2], Known::kLonger);
  EXPECT_EQ(cut.seconds[2], 0.003);
  EXPECT_TRUE(record.value().warnings.empty()) << "all rows were read";
}

TEST(TimesRecord, InATraceABlankIsAnAbsentWorker) {
  const TempFolder folder;
  const auto record = read_record(folder.make_file("t.csv", "step,w0,w1\n0,1,2\n1,,3\n"));
  ASSERT_TRUE(record.ok()) << record.error().message;
  ASSERT_EQ(record.value().steps.size(), 2u);
  EXPECT_EQ(record.value().steps[1].known, (std::vector<Known>{Known::kNothing, Known::kArrived}));
  EXPECT_EQ(record.value().steps[0].seconds, (std::vector<double>{1.0, 2.0}));
  EXPECT_EQ(record.value().steps[0].contributors, 2u);
  const auto no_run = read_run_record(folder.file("t.csv"));
  ASSERT_FALSE(no_run.ok());
  EXPECT_THAT(no_run.error().message, HasSubstr("t.csv"));
  EXPECT_FALSE(read_record(folder.file("none.csv")).ok());
}

TEST(TimesRecord, RunsWithEqualNumbersOfWorkersCanBeJoined) {
  const TempFolder folder;
  const auto a = read_record(make_run(folder, "a.db", 3)).value();
  const auto b = read_record(make_run(folder, "b.db", 3)).value();
  const auto joined = join_records({a, b});
  ASSERT_TRUE(joined.ok());
  ASSERT_EQ(joined.value().steps.size(), 6u);
  for (Step step = 0; step < 6; ++step) EXPECT_EQ(joined.value().steps[step].step, step);
  EXPECT_EQ(joined.value().paths.size(), 2u);
  const auto other = read_record(make_run(folder, "c.db", 4)).value();
  const auto refused = join_records({a, other});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("a.db' has 3 workers and"));
  EXPECT_THAT(refused.error().message, HasSubstr("c.db' has 4"));
}

TEST(TimesRecord, KeepsTheStepsOfARange) {
  const TempFolder folder;
  auto record = read_record(folder.make_file("t.csv", "step,w0,w1\n0,1,9\n1,2,9\n2,3,9\n"));
  ASSERT_TRUE(record.ok());
  TimesRecord part = record.value();
  DROVER_EXPECT_OK(keep_steps(part, parse_step_range("1:").value()));
  ASSERT_EQ(part.steps.size(), 2u);
  EXPECT_EQ(part.steps[0].step, 0u);
  EXPECT_EQ(part.steps[0].seconds[0], 2.0);
  DROVER_EXPECT_OK(keep_steps(part, parse_step_range(":2").value()));
  EXPECT_EQ(part.steps.size(), 2u);
  const Status none = keep_steps(part, parse_step_range("5:7").value());
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("rows 5 to 6, but the trace has 2 rows"));
}

}  // namespace
}  // namespace drover

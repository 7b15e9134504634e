// The book reports each late gradient once to policies and once to the record, and forgets
// stragglers that never arrive.
#include "coordinator/straggler_book.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

StragglerBook::Straggler missing_on(std::map<ShardId, Duration> shards) {
  return {.missing_on = std::move(shards), .run_time = 5ms, .was_busy = false, .report = {}};
}

TEST(StragglerBook, KnowsARunTimeWhenTheGradientHasArrivedOnEveryShard) {
  StragglerBook book;
  book.add(3, 7, missing_on({{0, 0ms}, {1, 0ms}}));
  book.on_arrived(0, 3, 7, 20ms);
  book.on_arrived(0, 3, 7, 90ms);  // this shard is not missing any more
  book.on_arrived(2, 3, 7, 90ms);  // this one never was
  EXPECT_TRUE(book.take_run_times().empty());
  book.on_arrived(1, 3, 7, 12ms);
  const auto late = book.take_run_times();
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].step, 3u);
  EXPECT_EQ(late[0].worker, 7u);
  EXPECT_EQ(late[0].run_time, 20ms) << "the largest over all shards";
  EXPECT_FALSE(late[0].was_busy);
  EXPECT_EQ(book.take_count(), 1u);
  book.on_arrived(1, 3, 7, 12ms);
  EXPECT_TRUE(book.take_run_times().empty()) << "once";
  EXPECT_EQ(book.take_count(), 0u);
}

TEST(StragglerBook, IncludesTimesSeenBeforeTheStepClosed) {
  StragglerBook book;
  book.add(0, 1, missing_on({{0, 0ms}}));
  book.on_arrived(0, 0, 1, 2ms);
  EXPECT_EQ(book.take_run_times().at(0).run_time, 5ms);
}

TEST(StragglerBook, CountsRunTimesFromTheLastOpening) {
  StragglerBook book;
  book.add(0, 1, {.missing_on = {{0, 40ms}}, .run_time = {}, .was_busy = false, .report = {}});
  book.on_arrived(0, 0, 1, 75ms);
  EXPECT_EQ(book.take_run_times().at(0).run_time, 35ms);
  EXPECT_EQ(without_lead(10ms, 40ms), Duration(1)) << "never zero or less";
}

TEST(StragglerBook, MarksRunTimesOfBusyWorkers) {
  StragglerBook book;
  StragglerBook::Straggler busy = missing_on({{0, 0ms}});
  busy.was_busy = true;
  book.add(0, 1, busy);
  book.on_arrived(0, 0, 1, 9ms);
  EXPECT_TRUE(book.take_run_times().at(0).was_busy);
}

TEST(StragglerBook, RecordsWhenTheReportHasArrived) {
  StragglerBook book;
  const StepReport report{.step = 0, .samples = 20, .compute = 9ms};
  book.add(0, 1, missing_on({{0, 0ms}}));
  book.add(0, 2, missing_on({{0, 0ms}}));
  book.add(0, 3, missing_on({{0, 0ms}}));
  book.on_report(1, report);  // before the gradient
  for (const WorkerId worker : {1u, 2u, 3u}) book.on_arrived(0, 0, worker, 12ms);
  auto records = book.take_records(/*all=*/false);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].worker, 1u);
  EXPECT_EQ(records[0].samples, 20u);
  EXPECT_EQ(records[0].compute, 9ms);
  EXPECT_EQ(records[0].run_time, 12ms);
  EXPECT_FALSE(records[0].censored);
  book.on_report(2, report);  // after the gradient
  records = book.take_records(/*all=*/false);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].worker, 2u);
  book.on_report(2, report);
  EXPECT_TRUE(book.take_records(/*all=*/false).empty()) << "once";
  records = book.take_records(/*all=*/true);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].worker, 3u) << "its report never arrived";
  EXPECT_EQ(records[0].samples, 0u);
  EXPECT_EQ(book.size(), 0u);
}

TEST(StragglerBook, ForgetsStragglersAndRecordsThoseThatArrivedWithoutReport) {
  StragglerBook book;
  book.add(0, 1, missing_on({{0, 0ms}}));
  book.add(0, 2, missing_on({{0, 0ms}}));
  book.on_arrived(0, 0, 2, 12ms);
  book.forget_before(StragglerBook::kStepsRemembered);
  EXPECT_EQ(book.size(), 2u);
  EXPECT_TRUE(book.take_records(/*all=*/false).empty());
  book.forget_before(StragglerBook::kStepsRemembered + 1);
  EXPECT_EQ(book.size(), 0u);
  const auto records = book.take_records(/*all=*/false);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].worker, 2u);
  book.on_arrived(0, 0, 1, 12ms);
  EXPECT_EQ(book.take_run_times().size(), 1u) << "only the one that arrived in time";
}

}  // namespace
}  // namespace drover

#include "store/trace_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/test_text.h"
#include "store/test_run.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST(RunTrace, HasTheKnownRunTimes) {
  const TempFolder folder;
  const std::string path = folder.file("run.csv");  // the content decides, and not the name
  const auto writer = writer_at(path);
  for (Step step = 0; step < 3; ++step) {
    std::vector<ArrivalRecord> arrivals = sample_arrivals(step, 3);  // 1, 2, 3 ms
    arrivals[2].censored = step != 0;
    DROVER_EXPECT_OK(writer->on_step(sample_step(step, 2), arrivals));
  }
  DROVER_EXPECT_OK(writer->on_late_arrival({.step = 1, .worker = 2, .run_time = 50ms}));
  DROVER_EXPECT_OK(writer->on_end({}));
  const Result<Trace> trace = read_trace(path);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().workers, (std::vector<std::string>{"w0", "w1", "w2"}));
  ASSERT_EQ(trace.value().steps(), 3u);
  EXPECT_EQ(trace.value().row(0)[2], 0.003);
  EXPECT_EQ(trace.value().row(1)[2], 0.05) << "late, but known";
  EXPECT_TRUE(std::isnan(trace.value().row(2)[2])) << "only a lower bound is known";
  EXPECT_EQ(trace.value().row(2)[0], 0.001);
  ASSERT_EQ(trace.value().warnings.size(), 1u);
  EXPECT_THAT(trace.value().warnings[0], mentions(path, 1, 9));
}

TEST(RunTrace, OfAnAsynchronousRunHasAWarning) {
  const TempFolder folder;
  for (const std::string policy : {"sync", "ssp:4", "async"}) {
    RunHeader header = sample_header();
    header.settings.emplace_back("policy", policy);
    auto writer = RunWriter::create(folder.file(policy), header);
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    DROVER_EXPECT_OK(writer.value()->on_step(sample_step(0, 2), sample_arrivals(0, 2)));
    DROVER_EXPECT_OK(writer.value()->on_end({}));
    const Result<Trace> trace = read_trace(folder.file(policy));
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    ASSERT_EQ(trace.value().warnings.size(), policy == "sync" ? 0u : 1u);
    if (policy == "sync") continue;
    EXPECT_THAT(trace.value().warnings[0], mentions(folder.file(policy), policy));
  }
}

TEST(RunTrace, OmitsStepsWithoutAKnownRunTime) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  for (Step step = 0; step < 3; ++step) {
    std::vector<ArrivalRecord> arrivals = sample_arrivals(step, 2);
    for (ArrivalRecord& arrival : arrivals) arrival.censored = step == 1;
    DROVER_EXPECT_OK(writer->on_step(sample_step(step, 2), arrivals));
  }
  DROVER_EXPECT_OK(writer->on_end({}));
  const Result<Trace> trace = read_trace(path);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().times, (std::vector<double>{0.001, 0.002, 0.001, 0.002}));
  ASSERT_EQ(trace.value().warnings.size(), 2u);
  EXPECT_THAT(trace.value().warnings[1], mentions(1));
}

TEST(RunTrace, ErrorsSayWhyARunCannotBeReplayed) {
  const TempFolder folder;
  {
    const auto writer = writer_at(folder.file("empty.db"));
    DROVER_EXPECT_OK(writer->on_end({}));
  }
  const Error empty = read_trace(folder.file("empty.db")).error();
  EXPECT_THAT(empty, is_error(ErrorKind::kInvalidInput, folder.file("empty.db")));
  {
    const auto writer = writer_at(folder.file("censored.db"));
    std::vector<ArrivalRecord> arrivals = sample_arrivals(0, 2);
    for (ArrivalRecord& arrival : arrivals) arrival.censored = true;
    DROVER_EXPECT_OK(writer->on_step(sample_step(0, 2), arrivals));
    DROVER_EXPECT_OK(writer->on_end({}));
  }
  const Error censored = read_trace(folder.file("censored.db")).error();
  EXPECT_THAT(censored, is_error(ErrorKind::kInvalidInput, folder.file("censored.db")));
  EXPECT_NE(without(censored.message, folder.file("censored.db")),
            without(empty.message, folder.file("empty.db")));
  {
    const auto writer = writer_at(folder.file("zero.db"));
    std::vector<ArrivalRecord> arrivals = sample_arrivals(7, 2);
    arrivals[1].run_time = 0ns;
    DROVER_EXPECT_OK(writer->on_step(sample_step(7, 2), arrivals));
    DROVER_EXPECT_OK(writer->on_end({}));
  }
  EXPECT_THAT(read_trace(folder.file("zero.db")).error(),
              is_error(ErrorKind::kInvalidInput, folder.file("zero.db"), 7, 1, 0));
  folder.make_file("torn.db", std::string("SQLite format 3\0", 16) + "and then nothing");
  EXPECT_THAT(read_trace(folder.file("torn.db")).error(),
              is_error(ErrorKind::kInvalidInput, folder.file("torn.db")));
}

}  // namespace
}  // namespace drover

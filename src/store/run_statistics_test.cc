// Statistics computed in SQL match calculations by hand, also of empty, NaN and censored records.
#include "store/run_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "store/test_run.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST(RunStatistics, OfARunWithoutStepsAreZero) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  const RunReader reader = reader_at(folder.file("run.db"));
  const RunTotals totals = reader.totals().value();
  EXPECT_EQ(totals.steps, 0u);
  EXPECT_EQ(totals.workers, 0u);
  EXPECT_EQ(totals.last_step_end, 0ns);
  EXPECT_TRUE(reader.workers().value().empty());
}

TEST(RunStatistics, SumUpTheSteps) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  for (const char* peer : {"coordinator", "shard 0", "worker 0", "worker 1", "worker 2"}) {
    DROVER_EXPECT_OK(writer->on_peer({*parse_peer(peer), "here", 1}));
  }
  for (Step step = 0; step < 10; ++step) {
    StepRecord record = sample_step(step, 2);
    record.late = 1;
    record.refused = step == 3 ? 1 : 0;
    record.elapsed = std::chrono::milliseconds(step + 1);
    DROVER_EXPECT_OK(writer->on_step(record, sample_arrivals(step, 2)));
  }
  DROVER_EXPECT_OK(writer->flush());
  const RunReader reader = reader_at(folder.file("run.db"));
  const RunTotals totals = reader.totals().value();
  EXPECT_EQ(totals.steps, 10u);
  EXPECT_EQ(totals.samples, 1280u);
  EXPECT_EQ(totals.gradients_used, 20u);
  EXPECT_EQ(totals.gradients_late, 10u);
  EXPECT_EQ(totals.gradients_refused, 1u);
  EXPECT_EQ(totals.workers, 3u);
  EXPECT_EQ(totals.shards, 1u);
  EXPECT_EQ(totals.last_step_end, 100ms);
}

TEST(RunStatistics, MediansAgreeWithSorting) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const TempFolder folder;
    const auto writer = writer_at(folder.file("run.db"));
    const uint64_t steps = 1 + random() % 30;
    std::vector<std::vector<ArrivalRecord>> of_worker(3);
    for (Step step = 0; step < steps; ++step) {
      std::vector<ArrivalRecord> arrivals;
      for (WorkerId worker = 0; worker < 3; ++worker) {
        arrivals.push_back({step, worker, Duration(random() % 20), random() % 4 == 0, 0ns});
        of_worker[worker].push_back(arrivals.back());
      }
      DROVER_EXPECT_OK(writer->on_step(sample_step(step, 3), arrivals));
    }
    DROVER_EXPECT_OK(writer->flush());
    const auto workers = reader_at(folder.file("run.db")).workers().value();
    ASSERT_EQ(workers.size(), 3u);
    for (WorkerId worker = 0; worker < 3; ++worker) {
      auto& all = of_worker[worker];
      std::sort(all.begin(), all.end(), [](const ArrivalRecord& a, const ArrivalRecord& b) {
        return a.run_time < b.run_time;
      });
      const Duration median = all[(all.size() - 1) / 2].run_time;
      const bool exact = std::none_of(all.begin(), all.end(), [&](const ArrivalRecord& arrival) {
        return arrival.censored && arrival.run_time <= median;
      });
      EXPECT_EQ(workers[worker].worker, worker);
      EXPECT_EQ(workers[worker].steps, steps);
      EXPECT_EQ(workers[worker].last, worker == 2 ? steps : 0);
      EXPECT_EQ(workers[worker].median_run_time, median);
      EXPECT_EQ(workers[worker].median_exact, exact);
    }
  }
}

}  // namespace
}  // namespace drover

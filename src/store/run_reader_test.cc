// A reader opens run files in every state, and refuses other files with the reason.
#include "store/run_reader.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <set>
#include <string>

#include "core/test_text.h"
#include "store/schema.h"
#include "store/test_run.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

std::string refusal(const std::string& path) {
  const auto reader = RunReader::open(path);
  if (reader) return "opened";
  EXPECT_THAT(reader.error(), is_error(ErrorKind::kInvalidInput, path));
  return reader.error().message;
}

// File permissions apply to root too after it has dropped its capabilities.
bool give_up_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  return syscall(SYS_capset, &header, none) == 0;
}

// Runs `body` as a user that cannot write to a read-only folder; root could.
template <typename Body>
bool as_ordinary_user(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    if (!give_up_capabilities()) _exit(2);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

TEST(RunReader, RefusesFilesThatAreNotRuns) {
  const TempFolder folder;
  folder.make_file("notes.txt", std::string(5000, 'x'));
  folder.make_file("empty.db", "");
  {
    Result<Database> other = Database::open(folder.file("other.db"), Database::Mode::kCreate);
    DROVER_EXPECT_OK(other.value().execute("CREATE TABLE mine (a)"));
    Result<Database> newer = Database::open(folder.file("newer.db"), Database::Mode::kCreate);
    DROVER_EXPECT_OK(newer.value().execute(schema_sql() + "PRAGMA user_version = 99"));
    Result<Database> older = Database::open(folder.file("older.db"), Database::Mode::kCreate);
    DROVER_EXPECT_OK(older.value().execute(schema_sql() + "PRAGMA user_version = 1"));
  }
  EXPECT_THAT(refusal(folder.file("newer.db")), mentions(99, kSchemaVersion));
  EXPECT_THAT(refusal(folder.file("older.db")), mentions(1, kOldestSchemaVersion));
  std::set<std::string> reasons;
  for (const std::string& path :
       {folder.file("notes.txt"), folder.file("empty.db"), folder.file("other.db"),
        folder.file("newer.db"), folder.file("older.db"), folder.file("none.db"),
        folder.path().string()})
    reasons.insert(without(refusal(path), path));
  EXPECT_EQ(reasons.size(), 7u) << "each has another reason";
  EXPECT_FALSE(fs::exists(folder.file("none.db")));  // reading creates no file
}

TEST(RunReader, ADamagedFileIsAnError) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  {
    const auto writer = writer_at(path);
    for (Step step = 0; step < 200; ++step) {
      DROVER_EXPECT_OK(writer->on_step(sample_step(step, 10), sample_arrivals(step, 10)));
    }
    DROVER_EXPECT_OK(writer->on_end({}));
  }
  fs::resize_file(path, 50'000);
  const auto reader = RunReader::open(path);
  const bool refused =
      !reader || !reader.value().steps() || !reader.value().arrivals() || !reader.value().events();
  EXPECT_TRUE(refused);
}

TEST(RunReader, GivesRangesOfSteps) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  for (Step step = 0; step < 10; ++step) {
    DROVER_EXPECT_OK(writer->on_decision({step, 2, 2, "all"}));
    DROVER_EXPECT_OK(writer->on_step(sample_step(step, 2), sample_arrivals(step, 2)));
  }
  DROVER_EXPECT_OK(writer->flush());
  const RunReader reader = reader_at(folder.file("run.db"));
  EXPECT_EQ(reader.steps().value().size(), 10u);
  EXPECT_EQ(reader.steps(7).value().size(), 3u);
  ASSERT_EQ(reader.steps(2, 4).value().size(), 2u);
  EXPECT_EQ(reader.steps(2, 4).value()[0].step, 2u);
  EXPECT_EQ(reader.arrivals(2, 4).value().size(), 4u);
  EXPECT_EQ(reader.decisions(2, 4).value().size(), 2u);
  EXPECT_EQ(reader.steps(20, 30).value().size(), 0u);
}

TEST(RunReader, GivesArrivalsOneByOne) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  for (Step step = 0; step < 3; ++step) {
    DROVER_EXPECT_OK(writer->on_step(sample_step(step, 2), sample_arrivals(step, 2)));
  }
  DROVER_EXPECT_OK(writer->flush());
  const RunReader reader = reader_at(folder.file("run.db"));
  const auto all = reader.arrivals().value();
  size_t visited = 0;
  DROVER_EXPECT_OK(reader.for_each_arrival([&](const RecordedArrival& each) {
    ASSERT_LT(visited, all.size());
    EXPECT_EQ(each.arrival.step, all[visited].arrival.step);
    EXPECT_EQ(each.arrival.worker, all[visited].arrival.worker);
    EXPECT_EQ(each.arrival.run_time, all[visited].arrival.run_time);
    ++visited;
  }));
  EXPECT_EQ(visited, 6u);
}

TEST(RunReader, ReadsAnEndedRunInAReadOnlyFolder) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  {
    const auto writer = writer_at(path);
    DROVER_EXPECT_OK(writer->on_step(sample_step(0, 2), sample_arrivals(0, 2)));
    DROVER_EXPECT_OK(writer->on_end({}));
  }
  fs::permissions(folder.path(), fs::perms(0555));
  EXPECT_TRUE(as_ordinary_user([&] {
    const auto reader = RunReader::open(path);
    return reader && reader.value().warning().empty() && reader.value().steps().value().size() == 1;
  }));
  fs::permissions(folder.path(), fs::perms(0755));
}

// A killed run leaves -wal and -shm files. With both, all rows are read. With the -wal file alone,
// the newest rows cannot be read in a read-only folder, and the reader warns.
TEST(RunReader, ReadsAKilledRunInAReadOnlyFolder) {
  const TempFolder live;
  const TempFolder folder;
  const auto writer = writer_at(live.file("run.db"));
  DROVER_EXPECT_OK(writer->on_step(sample_step(0, 2), sample_arrivals(0, 2)));
  DROVER_EXPECT_OK(writer->flush());
  for (const char* name : {"both.db", "wal.db", "neither.db"}) {
    fs::copy(live.file("run.db"), folder.file(name));
  }
  fs::copy(live.file("run.db-wal"), folder.file("both.db-wal"));
  fs::copy(live.file("run.db-shm"), folder.file("both.db-shm"));
  fs::copy(live.file("run.db-wal"), folder.file("wal.db-wal"));
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    fs::permissions(entry.path(), fs::perms(0444));
  }
  fs::permissions(folder.path(), fs::perms(0555));
  EXPECT_TRUE(as_ordinary_user([&] {
    const auto reader = RunReader::open(folder.file("both.db"));
    return reader && reader.value().warning().empty() && reader.value().steps().value().size() == 1;
  }));
  EXPECT_TRUE(as_ordinary_user([&] {
    const auto reader = RunReader::open(folder.file("wal.db"));
    return reader && has_value(reader.value().warning(), folder.file("wal.db") + "-wal") &&
           reader.value().header().value() == sample_header();
  }));
  EXPECT_TRUE(as_ordinary_user([&] {
    const auto reader = RunReader::open(folder.file("neither.db"));
    return reader && reader.value().warning().empty() &&
           reader.value().header().value() == sample_header();
  }));
  fs::permissions(folder.path(), fs::perms(0755));
}

TEST(RunReader, ReadsStatisticsOfPartialPulls) {
  const TempFolder folder;
  const std::string path = folder.file("partial.db");
  {
    const auto writer = writer_at(path);
    StepRecord step = sample_step(0, 2);
    step.fresh_mean = 0.9375;
    step.fresh_min = 0.875;
    step.staleness_mean = 0.125;
    step.staleness_max = 3;
    step.block_counts = {{1, 4}, {2, 28}};
    DROVER_EXPECT_OK(writer->on_step(step, sample_arrivals(0, 2)));
    DROVER_EXPECT_OK(writer->on_step(sample_step(1, 2), sample_arrivals(1, 2)));
    DROVER_EXPECT_OK(writer->on_end({}));
  }
  const RunReader reader = reader_at(path);
  const auto steps = reader.steps().value();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].fresh_mean, 0.9375);
  EXPECT_EQ(steps[0].fresh_min, 0.875);
  EXPECT_EQ(steps[0].staleness_mean, 0.125);
  EXPECT_EQ(steps[0].staleness_max, 3u);
  EXPECT_EQ(steps[0].block_counts, (std::vector<BlockCount>{{1, 4}, {2, 28}}));
  EXPECT_TRUE(std::isnan(steps[1].fresh_mean));
  EXPECT_TRUE(steps[1].block_counts.empty());
  const PartialPullStatistics pulls = reader.partial_pulls().value();
  EXPECT_EQ(pulls.fresh_mean, 0.9375);
  EXPECT_EQ(pulls.fresh_min, 0.875);
  EXPECT_EQ(pulls.stale_steps, 1u);
  EXPECT_EQ(pulls.staleness_max, 3u);
  EXPECT_EQ(pulls.uneven_steps, 1u);
  EXPECT_EQ(pulls.contributors_min, 1u);
  EXPECT_EQ(pulls.contributors_max, 2u);
  EXPECT_DOUBLE_EQ(pulls.contributors_mean, (4.0 + 56.0) / 32.0);
}

TEST(RunReader, ReadsForecastsAndLoadsOfShards) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const std::vector<ExpectedArrival> expected = {{1, 0.5F, 0.25F, 0.75F}, {4, 1.5F, 1.0F, 2.5F}};
  {
    const auto writer = writer_at(path);
    for (Step step = 0; step < 3; ++step) {
      DROVER_EXPECT_OK(
          writer->on_decision({.step = step,
                               .cutoff = 3,
                               .alive = 4,
                               .reason = "r",
                               .expected = step == 1 ? expected : std::vector<ExpectedArrival>{}}));
      StepRecord record = sample_step(step, 2);
      record.loads = {{0, Duration(10 + static_cast<int64_t>(step))}, {3, Duration(5)}};
      DROVER_EXPECT_OK(writer->on_step(record, sample_arrivals(step, 2)));
    }
    DROVER_EXPECT_OK(writer->on_end({}));
  }
  const RunReader reader = reader_at(path);
  EXPECT_EQ(reader.expected(1).value(), expected);
  EXPECT_TRUE(reader.expected(0).value().empty());
  EXPECT_EQ(reader.expected_last().value(), (std::vector<RunReader::ExpectedLast>{{1, 1.5}}));
  EXPECT_TRUE(reader.expected_last(2).value().empty());
  EXPECT_EQ(reader.shard_loads().value(),
            (std::vector<ShardLoad>{{0, Duration(33)}, {3, Duration(15)}}));
  EXPECT_EQ(reader.shard_loads(1, 2).value(),
            (std::vector<ShardLoad>{{0, Duration(11)}, {3, Duration(5)}}));
}

// A file of the previous formats.
TEST(RunReader, ReadsFilesOfOlderFormats) {
  const TempFolder folder;
  const std::string path = folder.file("before.db");
  {
    const auto writer = writer_at(path);
    DROVER_EXPECT_OK(writer->on_step(sample_step(0, 2), sample_arrivals(0, 2)));
    DROVER_EXPECT_OK(writer->on_end({}));
  }
  {
    Result<Database> file = Database::open(path, Database::Mode::kReadWrite);
    DROVER_EXPECT_OK(file.value().execute(
        "DROP TABLE forecasts; DROP TABLE shard_loads; DROP TABLE outliers;"
        "DROP TABLE block_contributors; ALTER TABLE steps DROP COLUMN fresh_mean;"
        "ALTER TABLE steps DROP COLUMN fresh_min; ALTER TABLE steps DROP COLUMN staleness_mean;"
        "ALTER TABLE steps DROP COLUMN staleness_max; PRAGMA user_version = 2"));
  }
  const RunReader reader = reader_at(path);
  const auto steps = reader.steps().value();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].samples, 128u);
  EXPECT_TRUE(std::isnan(steps[0].fresh_mean));
  EXPECT_FALSE(reader.partial_pulls().value().fresh_mean);
  EXPECT_EQ(reader.totals().value().steps, 1u);
  EXPECT_TRUE(reader.expected(0).value().empty());
  EXPECT_TRUE(reader.expected_last().value().empty());
  EXPECT_TRUE(reader.shard_loads().value().empty());
  EXPECT_TRUE(reader.outliers().value().empty());
}

TEST(RunReader, ListsTheWorkerWithMostOutliersFirst) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  {
    const auto writer = writer_at(path);
    for (Step step = 0; step < 3; ++step) {
      StepRecord record = sample_step(step, 2);
      record.outliers = {{.worker = 3, .blocks = 2, .ratio = 10.0 + static_cast<double>(step)}};
      if (step == 1)
        record.outliers.insert(record.outliers.begin(), {.worker = 1, .blocks = 1, .ratio = 99.0});
      DROVER_EXPECT_OK(writer->on_step(record, sample_arrivals(step, 2)));
    }
    DROVER_EXPECT_OK(writer->on_end({}));
  }
  const auto outliers = reader_at(path).outliers().value();
  ASSERT_EQ(outliers.size(), 2u);
  EXPECT_EQ(outliers[0].worker, 3u);
  EXPECT_EQ(outliers[0].steps, 3u);
  EXPECT_EQ(outliers[0].ratio_max, 12.0);
  EXPECT_EQ(outliers[1].worker, 1u);
}

}  // namespace
}  // namespace drover

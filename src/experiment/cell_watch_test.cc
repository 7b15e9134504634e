// The dashboard of an experiment shows a cell until it ends, and then one that is running. A cell
// that ends while it is being read is kept completely.
#include "experiment/cell_watch.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/test_text.h"
#include "store/run_reader.h"
#include "store/test_run.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::Ne;
using ::testing::Not;

class CellWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    experiment_.places.resize(1);
    experiment_.places[0].name = "calm";
    experiment_.variants.resize(1);
    experiment_.variants[0].name = "sync";
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      Cell cell;
      cell.seed = seed;
      cell.name = "calm-sync-" + std::to_string(seed);
      cells_.push_back(cell);
    }
    DROVER_EXPECT_OK(cell_folder_.open(cells_, false));
  }

  void begin(size_t cell) const {
    DROVER_EXPECT_OK(cell_folder_.begin(cells_[cell]));
    folder_.make_file("e/cells/" + cells_[cell].name + ".db.part", "");
  }

  const TempFolder folder_;
  ExperimentFile experiment_;
  std::vector<Cell> cells_;
  CellFolder cell_folder_{folder_.file("e")};
};

TEST_F(CellWatchTest, StaysWithACellUntilItEnds) {
  CellWatch watch(experiment_, cells_, cell_folder_);
  EXPECT_EQ(watch(), WatchedRun{}) << "no cell has started";
  begin(0);
  const WatchedRun first = watch();
  EXPECT_EQ(first.file, cell_folder_.part(cells_[0]));
  EXPECT_EQ(first.place, (RunPlace{"calm / sync / seed 1", 1, 3}));
  begin(1);
  EXPECT_EQ(watch(), first) << "the second cell runs at the same time";
  begin(2);
  DROVER_EXPECT_OK(cell_folder_.keep(cells_[0]));
  EXPECT_EQ(watch().file, cell_folder_.part(cells_[2])) << "the cell that started last";
  DROVER_EXPECT_OK(cell_folder_.keep(cells_[1]));
  EXPECT_EQ(watch().place.number, 3u);
  DROVER_EXPECT_OK(cell_folder_.keep(cells_[2]));
  EXPECT_EQ(watch().file, cell_folder_.run_file(cells_[2])) << "the last one stays";
  EXPECT_EQ(watch().gone, "");
}

TEST_F(CellWatchTest, ShowsACellThatEndedBetweenTwoCalls) {
  begin(2);
  DROVER_EXPECT_OK(cell_folder_.keep(cells_[2]));
  CellWatch watch(experiment_, cells_, cell_folder_);
  EXPECT_EQ(watch(), WatchedRun{}) << "cells that existed before are not shown";
  begin(0);
  EXPECT_EQ(watch().place.number, 1u);
  DROVER_EXPECT_OK(cell_folder_.keep(cells_[0]));
  begin(1);
  DROVER_EXPECT_OK(cell_folder_.keep(cells_[1]));
  EXPECT_EQ(watch().file, cell_folder_.run_file(cells_[1]));
}

TEST_F(CellWatchTest, ReportsWhyACellHasNoRunFile) {
  CellWatch watch(experiment_, cells_, cell_folder_);
  begin(0);
  watch();
  DROVER_EXPECT_OK(cell_folder_.fail(cells_[0], "no memory"));
  EXPECT_THAT(watch().gone, mentions("no memory"));
  begin(1);
  EXPECT_EQ(watch().gone, "");
  cell_folder_.drop(cells_[1]);
  EXPECT_THAT(watch().gone, AllOf(Ne(""), Not(mentions("no memory"))));
}

TEST_F(CellWatchTest, ACellThatIsReadWhileItEndsIsKeptCompletely) {
  const std::string part = cell_folder_.part(cells_[0]);
  auto writer = writer_at(part);
  for (Step step = 0; step < 50; ++step)
    DROVER_EXPECT_OK(writer->on_step(sample_step(step, 2), sample_arrivals(step, 2)));
  {
    // A read transaction prevents the write-ahead log from being merged.
    auto reader = Database::open(part, Database::Mode::kReadOnly);
    ASSERT_TRUE(reader.ok());
    DROVER_EXPECT_OK(reader.value().execute("BEGIN; SELECT * FROM run"));
    DROVER_EXPECT_OK(writer->on_end({.outcome = RunOutcome::kCompleted}));
    writer.reset();
    ASSERT_TRUE(std::filesystem::exists(part + "-wal"));
    DROVER_EXPECT_OK(cell_folder_.keep(cells_[0]));
    const auto kept = RunReader::open(cell_folder_.run_file(cells_[0]));
    ASSERT_TRUE(kept.ok()) << kept.error().message;
    EXPECT_EQ(kept.value().end().value().outcome, RunOutcome::kCompleted);
    EXPECT_EQ(kept.value().steps().value().size(), 50u);
  }
  cell_folder_.tidy(cells_);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.file("e/cells")))
    names.push_back(entry.path().filename().string());
  EXPECT_EQ(names, std::vector<std::string>{"calm-sync-1.db"});
  const auto whole = RunReader::open(cell_folder_.run_file(cells_[0]));
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole.value().steps().value().size(), 50u);
}

}  // namespace
}  // namespace drover

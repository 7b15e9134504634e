// Cells run in order, up to a limit at once, real ones alone. An interruption stops the running
// cells and starts no more. A finished cell never runs again.
#include "experiment/cell_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <set>

#include "core/test_text.h"
#include "experiment/cell_folder.h"
#include "store/test_run.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// A host whose cells end one at a time, the oldest first.
class FakeHost : public CellHost {
 public:
  Status start(size_t cell) override {
    if (cell == refuses) return system_error("no more processes");
    EXPECT_FALSE(stopped) << "nothing starts after the end";
    running.push_back(cell);
    started.push_back(cell);
    most = std::max(most, running.size());
    for (const size_t each : running)
      EXPECT_TRUE(running.size() == 1 || !alone.contains(each)) << each << " is not alone";
    return done();
  }
  Result<std::vector<EndedCell>> wait() override {
    EXPECT_FALSE(running.empty());
    EndedCell ended{.cell = running.front(),
                    .ending = stopped ? CellEnding::kInterrupted : CellEnding::kKept,
                    .reason = "",
                    .seconds = 1.0};
    running.pop_front();
    return std::vector<EndedCell>{ended};
  }
  bool interrupted() override { return started.size() >= interrupt_after; }
  void stop_all() override { stopped = true; }

  std::set<size_t> alone;
  size_t refuses = 1000;
  size_t interrupt_after = 1000;
  std::deque<size_t> running;
  std::vector<size_t> started;
  size_t most = 0;
  bool stopped = false;
};

struct Outcome {
  Status status;
  std::vector<size_t> kept;
};

Outcome run(FakeHost& host, const std::vector<CellToRun>& cells, size_t jobs) {
  for (const CellToRun& each : cells) {
    if (each.alone) host.alone.insert(each.cell);
  }
  std::vector<size_t> kept;
  const Status status = run_cells(
      cells, jobs, host,
      [&](const EndedCell& ended) {
        if (ended.ending == CellEnding::kKept) kept.push_back(ended.cell);
      },
      [&](const std::vector<size_t>& running) {
        EXPECT_THAT(running, SizeIs(host.running.size()));
      });
  return {status, kept};
}

TEST(CellLoop, RunsAllInOrderAndAtMostTheLimitAtOnce) {
  FakeHost host;
  const auto [status, kept] = run(host, {{0}, {1}, {2}, {3}, {4}}, 2);
  EXPECT_TRUE(status.ok());
  EXPECT_THAT(kept, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(host.most, 2u);
}

TEST(CellLoop, RealCellsRunAlone) {
  FakeHost host;
  const auto [status, kept] = run(host, {{0}, {1}, {2, true}, {3, true}, {4}, {5}}, 4);
  EXPECT_TRUE(status.ok());
  EXPECT_THAT(kept, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(host.most, 2u);
}

TEST(CellLoop, AnInterruptionStopsRunningCellsAndStartsNoMore) {
  FakeHost host;
  host.interrupt_after = 4;
  const auto [status, kept] = run(host, {{0}, {1}, {2}, {3}, {4}, {5}}, 2);
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(host.stopped);
  EXPECT_THAT(host.started, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(kept, ElementsAre(0, 1));
}

TEST(CellLoop, ACellThatCannotBeStartedEndsTheLoop) {
  FakeHost host;
  host.refuses = 2;
  const auto [status, kept] = run(host, {{0}, {1}, {2}, {3}}, 3);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "no more processes");
  EXPECT_THAT(host.running, IsEmpty()) << "all started cells have ended";
}

TEST(CellLoop, ReturnsAtOnceWithoutCells) {
  FakeHost host;
  EXPECT_TRUE(run(host, {}, 2).status.ok());
}

// --- The files of cells

std::vector<Cell> three_cells() {
  std::vector<Cell> cells(3);
  for (size_t i = 0; i < 3; ++i) {
    cells[i].name = "cell-" + std::to_string(i);
    cells[i].identity = "drover simulate x.toml --seed " + std::to_string(i) + "\n";
  }
  return cells;
}

TEST(CellFolder, ReportsDoneFailedAndMissingCells) {
  const TempFolder temp;
  const std::vector<Cell> cells = three_cells();
  {
    CellFolder folder(temp.file("out"));
    DROVER_EXPECT_OK(folder.open(cells, false));
    for (const Cell& cell : cells) {
      DROVER_EXPECT_OK(folder.begin(cell));
      std::ofstream(folder.part(cell)) << "run";
    }
    DROVER_EXPECT_OK(folder.keep(cells[0]));
    DROVER_EXPECT_OK(folder.fail(cells[1], "it diverged"));
    EXPECT_EQ(folder.state(cells[0]), CellState::kDone);
    EXPECT_EQ(folder.state(cells[1]), CellState::kFailed);
    EXPECT_EQ(folder.failure(cells[1]), "it diverged");
    EXPECT_EQ(folder.state(cells[2]), CellState::kMissing) << "a partial cell is missing";
    CellFolder other(temp.file("out"));
    const Status locked = other.open(cells, true);
    ASSERT_FALSE(locked.ok());
    EXPECT_THAT(locked.error().message,
                AllOf(mentions(temp.file("out"), "--out"), Not(mentions("--resume"))));
  }
  CellFolder again(temp.file("out"));
  const Status refused = again.open(cells, false);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, mentions(temp.file("out"), "--resume"));
  CellFolder resumed(temp.file("out"));
  // The folder that was refused still has the lock.
  const Status held = resumed.open(cells, true);
  EXPECT_FALSE(held.ok());
}

TEST(CellFolder, ResumesOnlyTheSameCells) {
  const TempFolder temp;
  std::vector<Cell> cells = three_cells();
  {
    CellFolder folder(temp.file("out"));
    DROVER_EXPECT_OK(folder.open(cells, false));
    DROVER_EXPECT_OK(folder.begin(cells[0]));
    std::ofstream(folder.part(cells[0])) << "run";
    DROVER_EXPECT_OK(folder.keep(cells[0]));
    DROVER_EXPECT_OK(folder.begin(cells[1]));
    std::ofstream(folder.part(cells[1])) << "half";
  }
  cells[1].identity = "drover simulate y.toml --seed 1\n";
  {
    CellFolder folder(temp.file("out"));
    DROVER_EXPECT_OK(folder.open(cells, true));
    EXPECT_EQ(folder.state(cells[0]), CellState::kDone);
    DROVER_EXPECT_OK(folder.begin(cells[1]));
    EXPECT_FALSE(std::filesystem::exists(folder.part(cells[1]))) << "its partial file is removed";
  }
  cells[0].identity = "drover simulate z.toml --seed 0\n";
  CellFolder folder(temp.file("out"));
  const Status refused = folder.open(cells, true);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, mentions("cell-0", "drover simulate x.toml --seed 0",
                                                "drover simulate z.toml --seed 0"));
}

}  // namespace
}  // namespace drover

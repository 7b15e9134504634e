// Run files of earlier versions.
#include "store/old_formats.h"

#include <gtest/gtest.h>

#include "core/event_text.h"
#include "store/schema.h"
#include "store/test_run.h"

namespace drover {
namespace {

// The tables of format 2 that have changed since, with the rows of a run.
constexpr const char* kFormat2 = R"sql(
  CREATE TABLE run (only_row INTEGER PRIMARY KEY, run_id TEXT, started TEXT, command TEXT, job TEXT,
                    outcome TEXT, reason TEXT, elapsed_ns INTEGER, parameters_digest TEXT);
  INSERT INTO run VALUES (1, '00000000000000aa', '2026-01-01T00:00:00Z', 'drover train', '',
                          'failed', 'all workers are gone; the last was lost: killed', 5, '');
  CREATE TABLE steps (step INTEGER PRIMARY KEY, at_ns INTEGER, elapsed_ns INTEGER);
  CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT);
  CREATE TABLE environment (key TEXT PRIMARY KEY, value TEXT);
  CREATE TABLE peers (name TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL);
  INSERT INTO peers VALUES ('coordinator', 'here', 1), ('worker 12', 'there', 2);
  CREATE TABLE memory (peer TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;
  INSERT INTO memory VALUES ('worker 12', 77);
  CREATE TABLE decisions (step INTEGER, cutoff INTEGER, alive INTEGER, reason TEXT,
                          time_limit_ns INTEGER, at_ns INTEGER);
  INSERT INTO decisions VALUES (0, 3, 4, 'bayes: 3 of 4 workers; ecdf 100 %', 0, 0),
      (1, 3, 4, 'bayes: 3 of 4 workers; the model has gone stale and stands back', 0, 0);
  CREATE TABLE events (at_ns INTEGER, step INTEGER, kind TEXT, peer TEXT, text TEXT);
  INSERT INTO events VALUES
      (1, 0, 'joined', 'worker 12', 'it takes part from step 0 on'),
      (2, 1, 'lost', 'worker 12', 'closed; the run goes on without it'),
      (3, 1, 'kept out', 'worker 12', 'it has come and gone 4 times in a row'),
      (4, 1, 'start-over', '', 'all workers are gone at step 1; everybody joins anew'),
      (5, 1, 'left', 'worker 12', 'it has finished'),
      (6, 1, 'exit', 'worker 12', 'killed by signal 9 (Killed); it is started again'),
      (7, 1, 'refused', 'worker 12', 'its gradient has NaN or infinity'),
      (8, 1, 'outlier', 'worker 12', 'its gradient is 9 times as large as usual'),
      (9, 1, 'pull', '', 'auto: a step is expected in 2 s'),
      (10, 1, 'reached', '', 'the parameters reach loss=0.2'),
      (11, 1, 'checkpoint', '', 'the checkpoint of step 1 is kept'),
      (12, 1, 'checkpoint-failed', 'shard 0', 'the checkpoint of step 1 is not kept'),
      (13, 1, 'resumed', '', 'the run goes on after step 1'),
      (14, 1, 'ended', '', 'completed');
)sql";

class OldFormat : public ::testing::TestWithParam<int> {
 protected:
  std::string file() {
    const std::string path = folder_.file("old.db");
    auto database = Database::open(path, Database::Mode::kCreate);
    EXPECT_TRUE(database.ok());
    const std::string marks = "PRAGMA application_id = " + std::to_string(kApplicationId) +
                              "; PRAGMA user_version = " + std::to_string(GetParam()) + ";";
    DROVER_EXPECT_OK(database.value().execute(marks + kFormat2));
    return path;
  }

 private:
  const TempFolder folder_;
};

TEST_P(OldFormat, EventsHaveKindsAndPeersAndKeepTheirText) {
  const auto events = reader_at(file()).events();
  ASSERT_TRUE(events.ok()) << events.error().message;
  std::vector<EventKind> kinds;
  for (const EventRecord& event : events.value()) kinds.push_back(event.kind());
  EXPECT_EQ(kinds,
            (std::vector{EventKind::kJoined, EventKind::kLost, EventKind::kBackedOff,
                         EventKind::kRestarted, EventKind::kLeft, EventKind::kExited,
                         EventKind::kRefused, EventKind::kOutlier, EventKind::kPullShare,
                         EventKind::kReached, EventKind::kCheckpointKept,
                         EventKind::kCheckpointFailed, EventKind::kResumed, EventKind::kEnded}));
  const EventRecord& lost = events.value()[1];
  EXPECT_EQ(lost.at, Duration(2));
  EXPECT_EQ(lost.step, 1u);
  EXPECT_EQ(lost.peer, (Peer{Role::kWorker, 12}));
  EXPECT_EQ(event_text(lost), "closed; the run goes on without it");
  EXPECT_EQ(events.value()[3].peer, std::nullopt);
}

TEST_P(OldFormat, PeersMemoryAndEndAreRead) {
  const RunReader reader = reader_at(file());
  const auto peers = reader.peers();
  ASSERT_TRUE(peers.ok()) << peers.error().message;
  ASSERT_EQ(peers.value().size(), 2u);
  EXPECT_EQ(peers.value()[1].peer, (Peer{Role::kWorker, 12}));
  EXPECT_EQ(peers.value()[1].host, "there");
  const auto end = reader.end();
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_EQ(end.value().outcome, RunOutcome::kFailed);
  EXPECT_EQ(end.value().cause, EndCause::kUnknown);
  EXPECT_EQ(end.value().memory_bytes,
            (std::vector<std::pair<Peer, uint64_t>>{{{Role::kWorker, 12}, 77}}));
}

TEST_P(OldFormat, DecisionsSayWhetherTheModelWasDisabled) {
  const auto decisions = reader_at(file()).decisions();
  ASSERT_TRUE(decisions.ok()) << decisions.error().message;
  ASSERT_EQ(decisions.value().size(), 2u);
  EXPECT_FALSE(decisions.value()[0].model_stale);
  EXPECT_TRUE(decisions.value()[1].model_stale);
}

INSTANTIATE_TEST_SUITE_P(All, OldFormat, ::testing::Values(2, 3, 4));

TEST(OldFormats, AKindThatNoFormatHadIsAnError) {
  EXPECT_FALSE(event_of_text({}, 0, "party", "", "").ok());
}

}  // namespace
}  // namespace drover

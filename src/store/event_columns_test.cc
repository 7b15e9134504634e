#include "store/event_columns.h"

#include <gtest/gtest.h>

#include "core/event_samples.h"
#include "core/event_text.h"
#include "store/test_run.h"

namespace drover {
namespace {

TEST(EventColumns, EventsAreReadUnchanged) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  for (const EventRecord& event : sample_events()) DROVER_EXPECT_OK(writer->on_event(event));
  DROVER_EXPECT_OK(writer->flush());
  const auto events = reader_at(folder.file("run.db")).events();
  ASSERT_TRUE(events.ok()) << events.error().message;
  ASSERT_EQ(events.value().size(), sample_events().size());
  for (size_t i = 0; i < sample_events().size(); ++i) {
    EXPECT_TRUE(events.value()[i] == sample_events()[i]) << event_line(sample_events()[i]);
  }
}

TEST(EventColumns, AnUnknownWordIsAnError) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  DROVER_EXPECT_OK(writer->on_event(sample_events().front()));
  DROVER_EXPECT_OK(writer->flush());
  for (const char* damage : {"UPDATE events SET cause = 'boredom'", "UPDATE events SET kind = 'x'",
                             "UPDATE events SET role = 'spectator'"}) {
    auto database = Database::open(folder.file("run.db"), Database::Mode::kReadWrite);
    ASSERT_TRUE(database.ok());
    DROVER_EXPECT_OK(database.value().execute(damage));
    EXPECT_FALSE(reader_at(folder.file("run.db")).events().ok()) << damage;
    DROVER_EXPECT_OK(database.value().execute(
        "UPDATE events SET cause = 'disconnected', kind = 'lost', role = 'worker'"));
  }
}

TEST(EventColumns, PeersAndTextsCanBeQueriedInSql) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  DROVER_EXPECT_OK(
      writer->on_event({.peer = Peer{Role::kWorker, 3}, .payload = event::Refused{"fc.bias"}}));
  DROVER_EXPECT_OK(writer->on_event({.payload = event::Ended{}}));
  DROVER_EXPECT_OK(writer->flush());
  const auto database = Database::open(folder.file("run.db"), Database::Mode::kReadOnly);
  ASSERT_TRUE(database.ok());
  const auto rows = database.value().query(
      "SELECT kind || '|' || peer || '|' || coalesce(tensor, '-') FROM events ORDER BY rowid",
      [](const Statement& row) { return row.text(0); });
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  EXPECT_EQ(rows.value(), (std::vector<std::string>{"refused|worker 3|fc.bias", "ended||-"}));
}

TEST(EventColumns, CausesOfAnEndParseToTheSameValues) {
  for (int i = 0; i <= static_cast<int>(EndCause::kRestartFailed); ++i) {
    const auto cause = static_cast<EndCause>(i);
    const auto parsed = parse_end_cause(name_of(cause));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed.value(), cause);
  }
  EXPECT_FALSE(parse_end_cause("boredom").ok());
}

}  // namespace
}  // namespace drover

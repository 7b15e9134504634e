#include "core/event_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/event_samples.h"

namespace drover {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string text_of(EventPayload payload) {
  return event_text({.step = 17, .payload = std::move(payload)});
}

TEST(EventText, EveryKindHasAUniqueNameThatParses) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < std::variant_size_v<EventPayload>; ++i) {
    const auto kind = static_cast<EventKind>(i);
    EXPECT_EQ(parse_event_kind(name_of(kind)), kind);
    EXPECT_TRUE(names.insert(name_of(kind)).second) << name_of(kind);
    EXPECT_EQ(EventRecord{.payload = empty_payload(kind)}.kind(), kind);
  }
  EXPECT_EQ(parse_event_kind("no such kind"), std::nullopt);
}

TEST(EventText, EveryKindHasAText) {
  std::set<EventKind> kinds;
  std::set<std::string> texts;
  for (const EventRecord& event : sample_events()) {
    kinds.insert(event.kind());
    EXPECT_TRUE(texts.insert(event_line(event)).second) << event_line(event);
    EXPECT_FALSE(event_text(event).empty()) << name_of(event.kind());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<EventPayload>);
}

TEST(EventText, HasTheValuesOfThePayload) {
  EXPECT_THAT(text_of(event::Lost{.loss = disconnected("reset by peer")}),
              StartsWith("reset by peer"));
  EXPECT_THAT(text_of(event::Lost{
                  .loss = {.cause = LossCause::kJoinTimeout, .waited = std::chrono::seconds(60)}}),
              HasSubstr("60 s"));
  EXPECT_THAT(text_of(event::Joined{}), HasSubstr("step 17"));
  EXPECT_THAT(text_of(event::Refused{.tensor = "fc.bias"}), HasSubstr("fc.bias"));
  const std::string outlier =
      text_of(event::Outlier{.ratio = 12.5, .tensor = "fc.bias", .used = false, .times = 1000});
  for (const char* value : {"12.5", "fc.bias", "1,000 times"})
    EXPECT_THAT(outlier, HasSubstr(value));
  const std::string kept = text_of(event::CheckpointKept{
      .version = 100, .bytes = 96'000'000, .took = std::chrono::milliseconds(1250)});
  for (const char* value : {"step 100", "96.0 MB", "1.25 s"}) EXPECT_THAT(kept, HasSubstr(value));
  EXPECT_THAT(text_of(event::Resumed{.version = 100, .folder = "/x/step-100"}),
              HasSubstr("/x/step-100"));
  EXPECT_THAT(text_of(event::PullShare{.share = 0.875, .shards_left_out = 1, .shards = 8}),
              HasSubstr("87.5 %"));
  EXPECT_THAT(text_of(event::BackedOff{.losses = 4, .wait = std::chrono::seconds(40)}),
              HasSubstr("40 s"));
}

TEST(EventText, ALineBeginsWithThePeer) {
  EventRecord event{.peer = Peer{Role::kWorker, 3}, .payload = event::Left{}};
  EXPECT_THAT(event_line(event), StartsWith("worker 3: "));
  event.payload = event::Lost{.loss = disconnected("reset")};
  EXPECT_EQ(event_line(event), "worker 3 was lost: reset");
  EXPECT_EQ(event_line({.payload = event::Ended{}}), event_text({.payload = event::Ended{}}));
  EXPECT_EQ(peer_text(event), "worker 3");
  EXPECT_EQ(peer_text({}), "");
}

TEST(EventText, RecordedTextIsKept) {
  const EventRecord event{.payload = event::Lost{}, .recorded_text = "as an old file has it"};
  EXPECT_EQ(event_text(event), "as an old file has it");
}

TEST(EventText, OfAnExitHasTheSignalOrTheStatus) {
  EXPECT_THAT(exit_text({.by_signal = true, .number = 9}), StartsWith("killed by signal 9 ("));
  EXPECT_EQ(exit_text({.by_signal = false, .number = 77}), "exited with status 77");
}

}  // namespace
}  // namespace drover

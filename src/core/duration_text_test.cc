#include "core/duration_text.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST(DurationText, IsANumberWithAUnit) {
  EXPECT_EQ(parse_duration("10s"), 10s);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("200ms"), 200ms);
  EXPECT_EQ(parse_duration("10us"), 10us);
  EXPECT_EQ(parse_duration("7ns"), 7ns);
  EXPECT_EQ(parse_duration("0s"), 0s);
}

TEST(DurationText, RefusesInvalidText) {
  for (const char* text :
       {"", "10", "s", "-1s", "1 s", "1m", "1.2.3s", "nan", "1e400s", "9999999999s"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(DurationText, ParsesToTheSameDuration) {
  EXPECT_EQ(duration_text(90s), "90s");
  for (const Duration each : {Duration(0), Duration(1), Duration(1'500), Duration(2'000'000),
                              Duration(3'000'000'001), Duration(86'400'000'000'000)})
    EXPECT_EQ(parse_duration(duration_text(each)), each);
}

}  // namespace
}  // namespace drover

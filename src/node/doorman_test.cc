// The key of a run, as those who join it are told.
#include "node/doorman.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(RunKey, SurvivesAsText) {
  const RunKey key{.run = ~uint64_t{0}, .token = "abc-def"};
  const auto read = parse_run_key(to_text(key));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().run, key.run);
  EXPECT_EQ(read.value().token, key.token);
}

TEST(RunKey, IsNotJustAnyText) {
  for (const char* text : {"", "-", "12", "12-", "-abc", "x12-abc", "99999999999999999999999-abc"})
    EXPECT_FALSE(parse_run_key(text).ok()) << text;
}

}  // namespace
}  // namespace drover

// Typing errors are recognised, and unrelated words are not.
#include "core/nearest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "core/test_text.h"

namespace drover {
namespace {

// The recursive definition of the edit distance, exponential in the length.
size_t slow_distance(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return std::max(a.size(), b.size());
  size_t best = slow_distance(a.substr(1), b.substr(1)) + (a[0] == b[0] ? 0 : 1);
  best = std::min(best, slow_distance(a.substr(1), b) + 1);
  best = std::min(best, slow_distance(a, b.substr(1)) + 1);
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0]) {
    best = std::min(best, slow_distance(a.substr(2), b.substr(2)) + 1);
  }
  return best;
}

TEST(EditDistance, CountsTypingErrors) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("sync", "sync"), 0U);
  EXPECT_EQ(edit_distance("sync", ""), 4U);
  EXPECT_EQ(edit_distance("synch", "sync"), 1U) << "insertion";
  EXPECT_EQ(edit_distance("snc", "sync"), 1U) << "deletion";
  EXPECT_EQ(edit_distance("sinc", "sync"), 1U) << "replacement";
  EXPECT_EQ(edit_distance("snyc", "sync"), 1U) << "swap of neighbours";
  EXPECT_EQ(edit_distance("saturday", "sunday"), 3U);
}

TEST(EditDistance, AgreesWithItsDefinitionBothWays) {
  std::mt19937_64 random(1);
  const auto word = [&] {
    std::string letters(random() % 7, 'a');
    for (char& letter : letters) letter = static_cast<char>('a' + random() % 3);
    return letters;
  };
  for (int i = 0; i < 500; ++i) {
    const std::string a = word();
    const std::string b = word();
    ASSERT_EQ(edit_distance(a, b), slow_distance(a, b)) << a << " " << b;
    ASSERT_EQ(edit_distance(b, a), edit_distance(a, b)) << a << " " << b;
  }
}

constexpr std::array<std::string_view, 4> kKnown = {"sync", "async", "momentum", "sgd"};

TEST(NearestName, FindsTheNearestKnownName) {
  EXPECT_EQ(nearest_name("snyc", kKnown), "sync");
  EXPECT_EQ(nearest_name("asinc", kKnown), "async");
  EXPECT_EQ(nearest_name("momentun", kKnown), "momentum");
  EXPECT_EQ(nearest_name("sgd", kKnown), "sgd");
}

TEST(NearestName, IgnoresDistantNames) {
  EXPECT_EQ(nearest_name("adam", kKnown), std::nullopt);
  EXPECT_EQ(nearest_name("", kKnown), std::nullopt);
  EXPECT_EQ(nearest_name("sync", {}), std::nullopt);
  // A third of the word may be wrong, and no more: two letters of eight.
  EXPECT_EQ(nearest_name("mxmentux", kKnown), "momentum");
  EXPECT_EQ(nearest_name("mxmxntux", kKnown), std::nullopt);
  // At least one letter may be, however short the word.
  EXPECT_EQ(nearest_name("sg", kKnown), "sgd");
}

TEST(DidYouMean, EndsAnErrorMessage) {
  EXPECT_THAT(did_you_mean("snyc", kKnown), mentions("sync"));
  EXPECT_EQ(did_you_mean("adam", kKnown), "");
}

}  // namespace
}  // namespace drover

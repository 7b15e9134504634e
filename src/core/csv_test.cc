#include "core/csv.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(CsvQuoted, OnlyWhereItMustBe) {
  EXPECT_EQ(csv_quoted("plain: 9 of 10"), "plain: 9 of 10");
  EXPECT_EQ(csv_quoted("a, b"), "\"a, b\"");
  EXPECT_EQ(csv_quoted("the \"best\""), "\"the \"\"best\"\"\"");
  EXPECT_EQ(csv_quoted("two\nlines"), "\"two\nlines\"");
}

}  // namespace
}  // namespace drover

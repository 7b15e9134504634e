#include "core/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace drover {
namespace {

TEST(WithCommas, GroupsByThree) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
}

TEST(Percent, HasTheRequestedDecimals) {
  EXPECT_EQ(percent(0.0423), "4.2 %");
  EXPECT_EQ(percent(0.04236, 2), "4.24 %");
  EXPECT_EQ(percent(1.0), "100.0 %");
  EXPECT_EQ(percent(-0.5), "-50.0 %");
}

TEST(Percent, OfANumberThatIsNotFiniteIsADash) {
  EXPECT_EQ(percent(std::nan("")), "-");
  EXPECT_EQ(percent(std::numeric_limits<double>::infinity()), "-");
  EXPECT_EQ(percent(std::numeric_limits<double>::max(), 2), "-") << "not finite in percent";
}

TEST(ShortPercent, HasNoTrailingZero) {
  EXPECT_EQ(short_percent(0.0423), "4.2 %");
  EXPECT_EQ(short_percent(0.00049), "0 %");
  EXPECT_EQ(short_percent(0.12), "12 %");
  EXPECT_EQ(short_percent(0.1239), "12.4 %");
  EXPECT_EQ(short_percent(0.9999), "100 %");
  EXPECT_EQ(short_percent(1.234), "123 %");
  EXPECT_EQ(short_percent(123.4), "12340 %");
}

TEST(CsvQuoted, OnlyIfNecessary) {
  EXPECT_EQ(csv_quoted("plain: 9 of 10"), "plain: 9 of 10");
  EXPECT_EQ(csv_quoted("a, b"), "\"a, b\"");
  EXPECT_EQ(csv_quoted("the \"best\""), "\"the \"\"best\"\"\"");
  EXPECT_EQ(csv_quoted("two\nlines"), "\"two\nlines\"");
}

TEST(ShellQuoted, OnlyIfNecessary) {
  EXPECT_EQ(shell_quoted("runs/a-b_1.db"), "runs/a-b_1.db");
  EXPECT_EQ(shell_quoted("my run.db"), "'my run.db'");
  EXPECT_EQ(shell_quoted("a;b"), "'a;b'");
}

}  // namespace
}  // namespace drover

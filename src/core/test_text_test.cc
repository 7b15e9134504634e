// A value is found where it stands alone, and not as a part of another value.
#include "core/test_text.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using ::testing::Not;

TEST(TestText, FindsAValueThatStandsAlone) {
  EXPECT_THAT("--workers: must be from 1 to 4096, not '0'.", mentions("--workers", 1, 4096, 0));
  EXPECT_THAT("worker 9", mentions("worker 9"));
  EXPECT_THAT("cannot read /x/run.db: gone", mentions("/x/run.db", "run.db"));
  EXPECT_THAT("grid.toml:19:1: policy", mentions("grid.toml:19", "policy"));
  EXPECT_THAT("8,7.", mentions(8, 7));
  EXPECT_THAT("-1 and x-1 and 1", mentions(-1, 1));
  EXPECT_THAT("12,345,678 of 1,000", mentions(12345678, 1000, "12,345,678"));
}

TEST(TestText, DoesNotFindAPartOfAnotherValue) {
  for (const char* text : {"19", "91", "9.5", "0.9", "-9", "9x", "x9", "1-9", "9_"})
    EXPECT_THAT(text, Not(mentions(9))) << text;
  EXPECT_THAT("--lr-floor", Not(mentions("--lr")));
  EXPECT_THAT("run.db.part", Not(mentions("run.db")));
  EXPECT_THAT("out-sync.db", Not(mentions("sync")));
  EXPECT_THAT("anything", Not(mentions("")));
  EXPECT_THAT("worker 1", Not(mentions("worker", 2)));
}

TEST(TestText, RemovesPartsOfAText) {
  EXPECT_EQ(without("/x: no /x or /y", "/x"), ": no  or /y");
  EXPECT_EQ(without("same", "other"), "same");
}

TEST(TestText, DistinguishesAProposalFromAMention) {
  const std::array<std::string_view, 2> known = {"sync", "static"};
  EXPECT_THAT("'snyc' is none of sync, static." + did_you_mean("snyc", known), proposes("sync"));
  EXPECT_THAT("'snyc' is none of sync, static." + did_you_mean("snyc", known),
              Not(proposes("static")));
}

TEST(TestText, MatchesErrors) {
  const Error error = system_error("cannot write /x: 5 bytes", 28);
  EXPECT_THAT(error, is_error(ErrorKind::kSystem, "/x", 5));
  EXPECT_THAT(error, is_error(ErrorKind::kSystem));
  EXPECT_THAT(error, Not(is_error(ErrorKind::kInvalidInput, "/x")));
  EXPECT_THAT(error, Not(is_error(ErrorKind::kSystem, "/y")));
}

}  // namespace
}  // namespace drover

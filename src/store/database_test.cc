// The wrapper returns the values that were bound, and its errors have readable reasons.
#include "store/database.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>
#include <limits>

#include "core/test_text.h"
#include "store/schema.h"
#include "store/test_run.h"

namespace drover {
namespace {

TEST(Database, ReturnsTheValuesThatWereBound) {
  const TempFolder folder;
  Result<Database> database = Database::open(folder.file("a.db"), Database::Mode::kCreate);
  ASSERT_TRUE(database.ok());
  DROVER_EXPECT_OK(database.value().execute("CREATE TABLE t (a, b, c, d)"));
  Result<Statement> insert = database.value().prepare("INSERT INTO t VALUES (?1, ?2, ?3, ?4)");
  ASSERT_TRUE(insert.ok());
  const std::string odd("quote ' zero \0 and \xc3\xa9", 19);
  DROVER_EXPECT_OK(insert.value().run(uint64_t{1} << 62, 0.1, odd, Duration(-5)));
  DROVER_EXPECT_OK(insert.value().run(-1, std::numeric_limits<double>::quiet_NaN(), "", true));
  DROVER_EXPECT_OK(insert.value().run(uint32_t{7}, std::numeric_limits<double>::infinity(),
                                      std::string_view(), false));
  struct Row {
    int64_t a;
    double b;
    std::string c;
    int64_t d;
    bool b_null;
    bool c_null;
  };
  const auto rows =
      database.value().query("SELECT a, b, c, d FROM t ORDER BY rowid", [](const Statement& row) {
        return Row{row.integer(0), row.real(1),    row.text(2),
                   row.integer(3), row.is_null(1), row.is_null(2)};
      });
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows.value().size(), 3u);
  EXPECT_EQ(rows.value()[0].a, int64_t{1} << 62);
  EXPECT_EQ(rows.value()[0].b, 0.1);
  EXPECT_EQ(rows.value()[0].c, odd);
  EXPECT_EQ(rows.value()[0].d, -5);
  EXPECT_TRUE(rows.value()[1].b_null);
  EXPECT_TRUE(std::isnan(rows.value()[1].b));
  EXPECT_FALSE(rows.value()[1].c_null);
  EXPECT_TRUE(std::isinf(rows.value()[2].b));
  EXPECT_FALSE(rows.value()[2].c_null);
}

TEST(Database, NamesTheReasonOfAFailure) {
  const TempFolder folder;
  Result<Database> database = Database::open(folder.file("a.db"), Database::Mode::kCreate);
  ASSERT_TRUE(database.ok());
  const Status wrong = database.value().execute("SELECT * FROM nowhere");
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error(), is_error(ErrorKind::kSystem, "nowhere"));
  const Result<Database> missing = Database::open(folder.file("b.db"), Database::Mode::kReadOnly);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error(), is_error(ErrorKind::kSystem, sqlite3_errstr(SQLITE_CANTOPEN)));
}

TEST(Database, OpensFilesWithSpecialCharactersImmutably) {
  const TempFolder folder;
  const std::string path = folder.file("50% of #3? yes.db");
  {
    Result<Database> database = Database::open(path, Database::Mode::kCreate);
    ASSERT_TRUE(database.ok());
    DROVER_EXPECT_OK(database.value().execute("CREATE TABLE t (a); INSERT INTO t VALUES (42)"));
  }
  Result<Database> database = Database::open(path, Database::Mode::kReadImmutable);
  ASSERT_TRUE(database.ok());
  const auto rows = database.value().query("SELECT a FROM t",
                                           [](const Statement& row) { return row.integer(0); });
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  EXPECT_EQ(rows.value(), std::vector<int64_t>{42});
}

TEST(Schema, OutcomesAndHexNumbersParseToTheSameValues) {
  for (const RunOutcome outcome : {RunOutcome::kRunning, RunOutcome::kCompleted,
                                   RunOutcome::kInterrupted, RunOutcome::kFailed}) {
    EXPECT_EQ(parse_outcome(name_of(outcome)).value(), outcome);
  }
  EXPECT_FALSE(parse_outcome("well").ok());
  for (const uint64_t value : {uint64_t{0}, uint64_t{255}, ~uint64_t{0}}) {
    EXPECT_EQ(parse_hex(to_hex(value)).value(), value);
  }
  EXPECT_EQ(to_hex(255), "00000000000000ff");
  EXPECT_FALSE(parse_hex("").ok());
  EXPECT_FALSE(parse_hex("12x").ok());
}

}  // namespace
}  // namespace drover

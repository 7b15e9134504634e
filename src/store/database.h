// Database and Statement: SQLite with owners, Results and our types; nothing about runs.
//
// One thread at a time. An Error from here gives only the reason ("disk full"); callers, who know
// what was attempted and on which file, put that around it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/result.h"
#include "core/time.h"

struct sqlite3;
struct sqlite3_stmt;

namespace drover {

// A value of any type, or NULL.
using ColumnValue = std::variant<std::monostate, int64_t, double, std::string>;

// A prepared statement. Must not outlive its Database.
class Statement {
 public:
  // Binds `values` to ?1, ?2, ... and runs a statement that gives no rows. Ready for the next run.
  template <typename... Values>
  Status run(const Values&... values) {
    bind_all(values...);
    return finish();
  }

  template <typename... Values>
  void bind_all(const Values&... values) {
    [[maybe_unused]] int index = 0;  // NOLINT(misc-const-correctness): const only without values
    (bind(++index, values), ...);
  }

  // Moves to the next row; false after the last, and then the statement is ready for the next run.
  Result<bool> next();

  // Columns of the current row, counted from 0. NULL reads as 0, "" and, for real(), NaN.
  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;
  uint64_t count(int column) const { return static_cast<uint64_t>(integer(column)); }
  uint32_t small(int column) const { return static_cast<uint32_t>(integer(column)); }
  Duration duration(int column) const { return Duration(integer(column)); }

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  // Texts are not copied: they must live until the statement has run.
  void bind(int index, int64_t value);
  void bind(int index, uint64_t value) { bind(index, static_cast<int64_t>(value)); }
  void bind(int index, uint32_t value) { bind(index, static_cast<int64_t>(value)); }
  void bind(int index, int value) { bind(index, static_cast<int64_t>(value)); }
  void bind(int index, bool value) { bind(index, static_cast<int64_t>(value)); }
  void bind(int index, Duration value) { bind(index, static_cast<int64_t>(value.count())); }
  void bind(int index, double value);  // NaN becomes NULL: SQLite knows no other
  void bind(int index, std::string_view value);
  void bind(int index, const std::string& value) { bind(index, std::string_view(value)); }
  void bind(int index, const char* value) { bind(index, std::string_view(value)); }
  void bind(int index, std::monostate);  // NULL
  void bind(int index, const ColumnValue& value) {
    std::visit([&](const auto& each) { bind(index, each); }, value);
  }
  template <typename Value>
  void bind(int index, const std::optional<Value>& value) {
    if (value) return bind(index, *value);
    bind(index, std::monostate{});
  }

  Status finish();

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  enum class Mode {
    kCreate,         // read and write; made if it is not there
    kReadWrite,      // as kCreate, but it must be there
    kReadOnly,       // also while somebody else writes
    kReadImmutable,  // read without any lock or side file; rows still in a -wal file are not seen
  };

  static Result<Database> open(const std::string& path, Mode mode);

  // Runs one or more statements that give no rows.
  Status execute(const std::string& sql);

  Result<Statement> prepare(std::string_view sql) const;

  // Calls `visit(statement)` for every row of a query, in order.
  template <typename Visit, typename... Values>
  Status for_each(std::string_view sql, Visit&& visit, const Values&... values) const {
    Result<Statement> statement = prepare(sql);
    if (!statement) return statement.error();
    statement.value().bind_all(values...);
    while (true) {
      const Result<bool> more = statement.value().next();
      if (!more) return more.error();
      if (!more.value()) return done();
      visit(statement.value());
    }
  }

  // All rows of a query, each turned into a value by `read(statement)`.
  template <typename Read, typename... Values>
  auto query(std::string_view sql, Read&& read, const Values&... values) const
      -> Result<std::vector<decltype(read(std::declval<const Statement&>()))>> {
    std::vector<decltype(read(std::declval<const Statement&>()))> rows;
    const Status status = for_each(
        sql, [&](const Statement& row) { rows.push_back(read(row)); }, values...);
    if (!status) return status.error();
    return rows;
  }

  // How long to wait for somebody else's lock before giving up.
  void wait_for_locks(Duration longest);

  bool in_transaction() const;
  // Nothing wrong with the file itself, but a file beside it (-shm, -wal) cannot be opened or made.
  bool side_files_refused() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Database(sqlite3* database) : database_(database) {}

  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace drover

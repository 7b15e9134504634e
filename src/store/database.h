// Database and Statement: a wrapper of SQLite with ownership, Results and Drover's types.
//
// One thread at a time. An Error from here has only the reason ("disk full"). The caller adds what
// was attempted, on which file.
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
  // Binds `values` to ?1, ?2, ... and runs a statement without rows. ENSURES: it can be run again.
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

  // Moves to the next row. Returns false after the last row; the statement can then be run again.
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

  // Texts are not copied. REQUIRES: they stay valid until the statement has run.
  void bind(int index, int64_t value);
  void bind(int index, uint64_t value) { bind(index, static_cast<int64_t>(value)); }
  void bind(int index, uint32_t value) { bind(index, static_cast<int64_t>(value)); }
  void bind(int index, int value) { bind(index, static_cast<int64_t>(value)); }
  void bind(int index, bool value) { bind(index, static_cast<int64_t>(value)); }
  void bind(int index, Duration value) { bind(index, static_cast<int64_t>(value.count())); }
  void bind(int index, double value);  // NaN becomes NULL, since SQLite has no NaN
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
    kCreate,         // read and write; creates the file if it does not exist
    kReadWrite,      // read and write; the file must exist
    kReadOnly,       // read; another process may write at the same time
    kReadImmutable,  // read without locks and side files; rows in a -wal file are not seen
  };

  static Result<Database> open(const std::string& path, Mode mode);

  // Runs one or more statements without rows.
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

  // All rows of a query, each converted by `read(statement)`.
  template <typename Read, typename... Values>
  auto query(std::string_view sql, Read&& read, const Values&... values) const
      -> Result<std::vector<decltype(read(std::declval<const Statement&>()))>> {
    std::vector<decltype(read(std::declval<const Statement&>()))> rows;
    const Status status = for_each(
        sql, [&](const Statement& row) { rows.push_back(read(row)); }, values...);
    if (!status) return status.error();
    return rows;
  }

  // Sets the maximum time to wait for the lock of another process.
  void wait_for_locks(Duration longest);

  bool in_transaction() const;
  // Whether the last error is that a file beside the database (-shm, -wal) cannot be opened or
  // created.
  bool side_files_refused() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Database(sqlite3* database) : database_(database) {}

  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace drover

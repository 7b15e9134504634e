#include "store/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>
#include <cstring>

#include "core/check.h"

namespace drover {
namespace {

// The reason of a failure, in words that a user can act on.
std::string reason_of(sqlite3* database) {
  const int code = sqlite3_extended_errcode(database);
  const int system = sqlite3_system_errno(database);
  std::string detail = system == 0
                           ? sqlite3_errmsg(database)
                           : fmt::format("{}: {}", sqlite3_errmsg(database), std::strerror(system));
  switch (code & 0xff) {
    case SQLITE_FULL:
      return fmt::format("disk full ({})", sqlite3_errmsg(database));
    case SQLITE_IOERR:
      if (system == ENOSPC || system == EDQUOT) return fmt::format("disk full ({})", detail);
      return fmt::format("the disk or file system refused ({}, SQLite code {})", detail, code);
    case SQLITE_CANTOPEN:
      return fmt::format("it cannot be opened ({})", detail);
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return fmt::format("it may not be written ({})", detail);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fmt::format("another process holds it ({})", detail);
    case SQLITE_CORRUPT:
      return fmt::format("its content is damaged ({})", detail);
    case SQLITE_NOTADB:
      return "it is not an SQLite database";
    default:
      return detail;
  }
}

// Escapes characters of a path that have a meaning in a URI: % ? #.
std::string immutable_uri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02x}", static_cast<unsigned>(c));
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

// Binding fails only for an invalid index, a running statement or lack of memory, never because of
// input.
void Statement::bind(int index, int64_t value) {
  DROVER_CHECK(sqlite3_bind_int64(statement_.get(), index, value) == SQLITE_OK);
}

void Statement::bind(int index, double value) {
  DROVER_CHECK(sqlite3_bind_double(statement_.get(), index, value) == SQLITE_OK);
}

void Statement::bind(int index, std::monostate) {
  DROVER_CHECK(sqlite3_bind_null(statement_.get(), index) == SQLITE_OK);
}

void Statement::bind(int index, std::string_view value) {
  const char* data = value.data() == nullptr ? "" : value.data();  // a null pointer would bind NULL
  DROVER_CHECK(sqlite3_bind_text64(statement_.get(), index, data, value.size(), nullptr,
                                   SQLITE_UTF8) == SQLITE_OK);
}

Result<bool> Statement::next() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    sqlite3_reset(statement_.get());
    return false;
  }
  // Get the reason before the reset, which may overwrite it.
  Error error = system_error(reason_of(sqlite3_db_handle(statement_.get())));
  sqlite3_reset(statement_.get());
  return error;
}

Status Statement::finish() {
  Result<bool> more = next();
  if (!more) return more.error();
  DROVER_CHECK(!more.value());
  return done();
}

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const {
  if (is_null(column)) return std::numeric_limits<double>::quiet_NaN();
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const unsigned char* data = sqlite3_column_text(statement_.get(), column);
  if (data == nullptr) return {};
  return std::string(reinterpret_cast<const char*>(data),
                     static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

Result<Database> Database::open(const std::string& path, Mode mode) {
  int flags = SQLITE_OPEN_NOMUTEX;
  switch (mode) {
    case Mode::kCreate:
      flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
      break;
    case Mode::kReadWrite:
      flags |= SQLITE_OPEN_READWRITE;
      break;
    case Mode::kReadOnly:
      flags |= SQLITE_OPEN_READONLY;
      break;
    case Mode::kReadImmutable:
      flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
      break;
  }
  const std::string name = mode == Mode::kReadImmutable ? immutable_uri(path) : path;
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &raw, flags, nullptr);
  if (raw == nullptr) return system_error("out of memory");
  Database database(raw);
  if (code != SQLITE_OK) return system_error(reason_of(raw));
  return database;
}

Status Database::execute(const std::string& sql) {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return system_error(reason_of(database_.get()));
  }
  return done();
}

Result<Statement> Database::prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return system_error(reason_of(database_.get()));
  return Statement(statement);
}

void Database::wait_for_locks(Duration longest) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(longest);
  sqlite3_busy_timeout(database_.get(), static_cast<int>(milliseconds.count()));
}

bool Database::in_transaction() const { return sqlite3_get_autocommit(database_.get()) == 0; }

bool Database::side_files_refused() const {
  const int code = sqlite3_errcode(database_.get()) & 0xff;
  return code == SQLITE_CANTOPEN || code == SQLITE_READONLY;
}

}  // namespace drover

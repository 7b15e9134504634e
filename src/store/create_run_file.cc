#include "store/create_run_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "core/atomic_file.h"
#include "store/schema.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

Error cannot_create(const std::string& path, const std::string& why, const std::string& advice) {
  return system_error(fmt::format("cannot create the run file '{}': {}; {}", path, why, advice));
}

// SQLite would apply the log of a deleted database to the new one.
Status check_no_remains(const std::string& path) {
  for (const char* ending : {"-wal", "-journal"}) {
    std::error_code ignored;
    if (!fs::exists(path + ending, ignored)) continue;
    return invalid_input(fmt::format(
        "cannot create the run file '{0}': '{0}{1}' is left of an earlier run whose file "
        "is gone; delete it, or give another name",
        path, ending));
  }
  return done();
}

// An error with advice if there is a file at `path`. If two runs start at the same time, the later
// rename decides.
Status check_free(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return check_no_remains(path);
  if (error) {
    return cannot_create(path, error.message(), "give another place with --run-file");
  }
  if (status.type() == fs::file_type::directory) {
    return invalid_input(fmt::format(
        "cannot create the run file '{0}': it is a folder; name a file in it, such as '{0}/run.db'",
        path));
  }
  if (status.type() != fs::file_type::regular) {
    return invalid_input(fmt::format(
        "cannot create the run file '{}': it is not a regular file; give another name", path));
  }
  Result<Database> database = Database::open(path, Database::Mode::kReadOnly);
  if (database) {
    const auto id = database.value().query("PRAGMA application_id",
                                           [](const Statement& row) { return row.integer(0); });
    if (id && !id.value().empty() && id.value().front() == kApplicationId) {
      return invalid_input(fmt::format(
          "cannot create the run file '{0}': a run is recorded there already, and runs are never "
          "overwritten; give another name, or move or delete it (look at it with: drover runs "
          "'{0}')",
          path));
    }
  }
  return invalid_input(
      fmt::format("cannot create the run file '{}': the file exists and is not a drover run, so it "
                  "is left as it is; "
                  "give another name",
                  path));
}

Status make_folders(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) return done();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return cannot_create(
        path, fmt::format("the folder '{}' cannot be made ({})", folder.string(), error.message()),
        "give another place with --run-file, or make the folder writable");
  }
  return done();
}

Status insert_pairs(Database& database, std::string_view sql,
                    const std::vector<std::pair<std::string, std::string>>& pairs) {
  Result<Statement> insert = database.prepare(sql);
  if (!insert) return insert.error();
  for (const auto& [key, value] : pairs) {
    if (Status status = insert.value().run(key, value); !status) return status;
  }
  return done();
}

Status write_header(Database& database, const RunHeader& header) {
  if (Status status = database.execute("BEGIN; " + schema_sql()); !status) return status;
  {
    Result<Statement> run = database.prepare(
        "INSERT INTO run (only_row, run_id, started, command, job) VALUES (1, ?1, ?2, ?3, ?4)");
    if (!run) return run.error();
    Status status =
        run.value().run(to_hex(header.run_id), header.started, header.command, header.job);
    if (!status) return status;
  }
  Status status =
      insert_pairs(database, "INSERT OR REPLACE INTO settings VALUES (?1, ?2)", header.settings);
  if (!status) return status;
  status = insert_pairs(database, "INSERT OR REPLACE INTO environment VALUES (?1, ?2)",
                        header.environment);
  if (!status) return status;
  return database.execute("COMMIT; PRAGMA journal_mode = WAL");
}

// A file under construction. The destructor removes it unless it was given its name.
class Draft {
 public:
  explicit Draft(const std::string& path) : name_(fmt::format("{}.new-{}", path, getpid())) {
    remove();
  }
  ~Draft() { remove(); }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  const std::string& name() const { return name_; }

  // Gives the draft its name, unless another process has taken the name meanwhile.
  Status publish(const std::string& path) const {
    // The file system has no rename without replacement; check_free was called just before.
    if (rename_if_free(name_, path)) return done();
    return system_error(std::strerror(errno));
  }

 private:
  void remove() const {
    std::error_code ignored;
    for (const char* ending : {"", "-journal", "-wal", "-shm"}) fs::remove(name_ + ending, ignored);
  }

  const std::string name_;
};

Status write_draft(const std::string& name, const RunHeader& header) {
  Result<Database> database = Database::open(name, Database::Mode::kCreate);
  if (!database) return database.error();
  return write_header(database.value(), header);
}

}  // namespace

Result<Database> create_run_file(const std::string& path, const RunHeader& header) {
  constexpr const char* kAdvice =
      "check that the folder is writable and the disk has space, or give another place with "
      "--run-file";
  if (path.empty()) return invalid_input("cannot create a run file without a name");
  if (const Status status = check_free(path); !status) return status.error();
  if (const Status status = make_folders(path); !status) return status.error();
  const Draft draft(path);
  if (const Status status = write_draft(draft.name(), header); !status) {
    return cannot_create(path, status.error().message, kAdvice);
  }
  if (const Status status = draft.publish(path); !status) {
    return cannot_create(path, status.error().message, kAdvice);
  }
  Result<Database> database = Database::open(path, Database::Mode::kReadWrite);
  if (!database) return cannot_create(path, database.error().message, kAdvice);
  return database;
}

}  // namespace drover

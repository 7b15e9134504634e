#include "experiment/cell_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/atomic_file.h"
#include "core/text.h"
#include "store/run_writer.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

CellFolder::~CellFolder() {
  if (lock_ >= 0) ::close(lock_);
}

std::string CellFolder::file(const Cell& cell, const char* ending) const {
  return path_ + "/cells/" + cell.name + ending;
}

Status CellFolder::open(const std::vector<Cell>& cells, bool resume) {
  std::error_code trouble;
  fs::create_directories(path_ + "/cells", trouble);
  if (!trouble) lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) {
    return system_error(fmt::format("cannot create folder {}: {}; choose another with --out", path_,
                                    trouble ? trouble.message() : std::strerror(errno)));
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    return invalid_input(fmt::format(
        "folder {} is in use by another drover experiment; wait for it, or choose another folder "
        "with --out",
        path_));
  }
  if (resume) return check_same(cells);
  if (!has_cells()) return done();
  return invalid_input(
      fmt::format("folder {} already has cells of an experiment; continue it with --resume, or "
                  "choose another folder with --out",
                  path_));
}

bool CellFolder::has_cells() const {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_ + "/cells", ignored)) {
    const std::string ending = entry.path().extension().string();
    if (ending == ".db" || ending == ".failed") return true;
  }
  return false;
}

Status CellFolder::check_same(const std::vector<Cell>& cells) const {
  for (const Cell& cell : cells) {
    if (state(cell) == CellState::kMissing) continue;
    const std::string before = content_of(file(cell, ".cell"));
    if (before == cell.identity) continue;
    const std::string was = first_line(before);
    const std::string is = first_line(cell.identity);
    return invalid_input(fmt::format(
        "cell {} in {} differs from the experiment file.\n  recorded     {}\n  experiment   "
        "{}{}\nRestore the experiment file, choose another folder with --out, or remove {}",
        cell.name, path_, was.empty() ? "(unknown)" : was, is,
        was == is ? "\n  (the content of the file or the 'beside' command has changed)" : "",
        shell_quoted(file(cell, ".db"))));
  }
  return done();
}

CellState CellFolder::state(const Cell& cell) const {
  std::error_code ignored;
  if (fs::exists(run_file(cell), ignored)) return CellState::kDone;
  return fs::exists(file(cell, ".failed"), ignored) ? CellState::kFailed : CellState::kMissing;
}

std::string CellFolder::failure(const Cell& cell) const {
  std::string reason = content_of(file(cell, ".failed"));
  while (reason.ends_with('\n')) reason.pop_back();
  return reason;
}

Status CellFolder::begin(const Cell& cell) const {
  drop(cell);
  return write_file_atomically(file(cell, ".cell"), cell.identity);
}

Status CellFolder::keep(const Cell& cell) const {
  std::error_code trouble;
  if (fs::file_size(log(cell), trouble) == 0) fs::remove(log(cell), trouble);
  fold_log(part(cell));
  // While a process reads the run file, its write-ahead log cannot be merged and is moved along.
  // The log is moved first: a run file without its log would look complete, a log without its run
  // file does not.
  if (fs::exists(part(cell) + "-wal", trouble))
    fs::rename(part(cell) + "-wal", run_file(cell) + "-wal", trouble);
  if (!trouble) fs::rename(part(cell), run_file(cell), trouble);
  if (!trouble) return done();
  return system_error(
      fmt::format("cannot create run file {}: {}", run_file(cell), trouble.message()));
}

Status CellFolder::fail(const Cell& cell, const std::string& reason) const {
  std::error_code ignored;
  for (const char* side : {"", "-wal", "-shm", "-journal"}) fs::remove(part(cell) + side, ignored);
  return write_file_atomically(file(cell, ".failed"), reason + "\n");
}

void CellFolder::drop(const Cell& cell) const {
  std::error_code ignored;
  for (const char* side : {"", "-wal", "-shm", "-journal"}) fs::remove(part(cell) + side, ignored);
  fs::remove(run_file(cell) + "-wal", ignored);  // see keep()
  fs::remove(log(cell), ignored);
}

void CellFolder::tidy(const std::vector<Cell>& cells) const {
  std::error_code ignored;
  for (const Cell& cell : cells) {
    for (const char* side : {"-wal", "-shm"}) fs::remove(part(cell) + side, ignored);
    if (state(cell) == CellState::kDone) fold_log(run_file(cell));
  }
}

}  // namespace drover

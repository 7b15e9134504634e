#include "store/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace drover {
namespace {

// So much is written at a time: whoever wants to stop is heard soon.
constexpr size_t kPiece = size_t{8} << 20;

bool asked(const GoOn& go_on) { return !go_on || go_on(); }

Error stopped(const std::string& path) {
  return {ErrorKind::kStopped, "writing " + path + " was stopped"};
}

Error cannot(const std::string& what, int reason) {
  return system_error("cannot " + what + ": " + std::strerror(reason), reason);
}

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

DurableFile::DurableFile(std::string path, int file, GoOn go_on)
    : path_(std::move(path)), file_(file), go_on_(std::move(go_on)) {}

DurableFile::DurableFile(DurableFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      go_on_(std::move(other.go_on_)),
      stopped_(other.stopped_),
      committed_(std::exchange(other.committed_, true)) {}

DurableFile::~DurableFile() {
  if (file_ >= 0) ::close(file_);
  if (!committed_ && !stopped_) ::unlink((path_ + kPartialSuffix).c_str());
}

Result<DurableFile> DurableFile::create(const std::string& path, GoOn go_on) {
  if (!asked(go_on)) return stopped(path);
  const int file =
      ::open((path + kPartialSuffix).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return cannot("write " + path, errno);
  return DurableFile(path, file, std::move(go_on));
}

bool DurableFile::may_go_on() {
  stopped_ = stopped_ || !asked(go_on_);
  return !stopped_;
}

Error DurableFile::trouble(const char* attempted) const {
  const int reason = errno;
  std::string words =
      "cannot " + std::string(attempted) + " " + path_ + ": " + std::strerror(reason);
  if (reason == ENOSPC || reason == EDQUOT) words += "; make room on that disk";
  return system_error(words, reason);
}

Status DurableFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (!may_go_on()) return stopped(path_);
    const ssize_t written = ::write(file_, bytes.data(), std::min(bytes.size(), kPiece));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return trouble("write");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return done();
}

Status DurableFile::commit() {
  if (!may_go_on()) return stopped(path_);
  if (::fsync(file_) != 0) return trouble("sync");
  if (::close(std::exchange(file_, -1)) != 0) return trouble("write");
  if (!may_go_on()) return stopped(path_);
  if (::rename((path_ + kPartialSuffix).c_str(), path_.c_str()) != 0) return trouble("write");
  committed_ = true;
  if (!may_go_on()) return stopped(path_);
  sync_folder(parent_of(path_));
  return done();
}

Status make_folder(const std::string& path, const GoOn& go_on) {
  std::error_code trouble;
  if (std::filesystem::is_directory(path, trouble)) return done();
  const std::string parent = parent_of(path);
  if (parent != path && parent != ".") {
    if (const Status above = make_folder(parent, go_on); !above) return above;
  }
  if (!asked(go_on)) return stopped(path);
  // Several shards may make it at once.
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
    return cannot("make the folder " + path, errno);
  sync_folder(parent);
  return done();
}

void sync_folder(const std::string& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

}  // namespace drover

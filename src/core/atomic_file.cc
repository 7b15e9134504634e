#include "core/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace drover {
namespace {

// Bytes per write(), small enough to notice a request to stop soon.
constexpr size_t kPiece = size_t{8} << 20;

bool asked(const KeepWriting& keep_writing) { return !keep_writing || keep_writing(); }

Error stopped(const std::string& path) {
  return {ErrorKind::kStopped, "writing " + path + " was stopped"};
}

Error cannot_write(const std::string& path, int reason) {
  std::string words = "cannot write " + path + ": " + std::strerror(reason);
  if (reason == ENOSPC || reason == EDQUOT) words += "; free some space on that disk";
  return system_error(words, reason);
}

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

AtomicFile::AtomicFile(std::string path, std::string draft, int file, AtomicFileOptions options)
    : path_(std::move(path)), draft_(std::move(draft)), file_(file), options_(std::move(options)) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      draft_(std::exchange(other.draft_, {})),
      file_(std::exchange(other.file_, -1)),
      options_(std::move(other.options_)) {}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  if (!draft_.empty()) ::unlink(draft_.c_str());
}

Result<AtomicFile> AtomicFile::create(const std::string& path, AtomicFileOptions options) {
  if (!asked(options.keep_writing)) return stopped(path);
  std::string draft = path + kPartialSuffix;
  if (options.contended) draft += "-" + std::to_string(::getpid());
  ::unlink(draft.c_str());
  // Never follow a symbolic link: another user may have put it there.
  const int file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                          options.shared ? 0666 : 0600);
  if (file < 0) return cannot_write(path, errno);
  return AtomicFile(path, std::move(draft), file, std::move(options));
}

// Once this has returned false, the draft stays as it is.
bool AtomicFile::may_continue() {
  if (!draft_.empty() && !asked(options_.keep_writing)) draft_.clear();
  return !draft_.empty();
}

Error AtomicFile::trouble() const { return cannot_write(path_, errno); }

Status AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (!may_continue()) return stopped(path_);
    const ssize_t written = ::write(file_, bytes.data(), std::min(bytes.size(), kPiece));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return trouble();
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return done();
}

Status AtomicFile::sync() {
  if (!may_continue()) return stopped(path_);
  if (file_ < 0) return done();
  if (::fsync(file_) != 0) return trouble();
  if (::close(std::exchange(file_, -1)) != 0) return trouble();
  return done();
}

Status AtomicFile::commit() {
  if (const Status synced = sync(); !synced) return synced;
  if (!may_continue()) return stopped(path_);
  const bool renamed = options_.replace ? ::rename(draft_.c_str(), path_.c_str()) == 0
                                        : rename_if_free(draft_, path_);
  if (!renamed && !options_.replace && errno == EEXIST)
    return invalid_input("cannot write " + path_ + ": it exists already");
  if (!renamed) return trouble();
  draft_.clear();
  if (!asked(options_.keep_writing)) return stopped(path_);
  sync_folder(parent_of(path_));
  return done();
}

Status write_file_atomically(const std::string& path, std::span<const char> bytes,
                             AtomicFileOptions options) {
  auto file = AtomicFile::create(path, std::move(options));
  if (!file) return file.error();
  if (const Status written = file.value().write(bytes); !written) return written;
  return file.value().commit();
}

bool rename_if_free(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  return errno == EINVAL && ::rename(from.c_str(), to.c_str()) == 0;
}

Status make_folder(const std::string& path, const KeepWriting& keep_writing) {
  std::error_code trouble;
  if (std::filesystem::is_directory(path, trouble)) return done();
  const std::string parent = parent_of(path);
  if (parent != path && parent != ".") {
    if (const Status above = make_folder(parent, keep_writing); !above) return above;
  }
  if (!asked(keep_writing)) return stopped(path);
  // Several processes may make the folder at the same time.
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
    return system_error("cannot make the folder " + path + ": " + std::strerror(errno), errno);
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

#include "cli/export/out_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace drover {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = 1 << 18;

Error taken(const std::string& path) {
  return invalid_input(fmt::format(
      "'{}' exists already; name another place with --out, or replace it with --force", path));
}

}  // namespace

OutFile::OutFile(std::string path, std::string draft, bool force, std::FILE* file)
    : path_(std::move(path)), draft_(std::move(draft)), force_(force), file_(file) {
  std::setvbuf(file_.get(), nullptr, _IOFBF, kBufferBytes);
}

OutFile::OutFile(OutFile&& other) noexcept
    : path_(std::move(other.path_)),
      draft_(std::exchange(other.draft_, {})),
      force_(other.force_),
      file_(std::move(other.file_)),
      error_(other.error_) {}

OutFile::~OutFile() {
  if (!draft_.empty()) ::unlink(draft_.c_str());
}

Result<OutFile> OutFile::create(const std::string& path, bool force) {
  std::error_code ignored;
  const fs::file_status there = fs::symlink_status(path, ignored);
  if (fs::is_directory(path, ignored)) {
    return invalid_input(fmt::format("'{}' is a folder; give the name of a file with --out", path));
  }
  if (fs::exists(there)) {
    if (!force) return taken(path);
    // A name such as /dev/stdout cannot be replaced by renaming.
    if (!fs::is_regular_file(path, ignored)) {
      return invalid_input(
          fmt::format("'{}' is not a plain file; give the name of one with --out", path));
    }
  }
  std::string draft = fmt::format("{}.new-{}", path, ::getpid());
  std::FILE* const file = std::fopen(draft.c_str(), "wbxe");
  if (file == nullptr) {
    return system_error(
        fmt::format("cannot write '{}': {}; check the folder, or name another place with --out",
                    path, std::strerror(errno)));
  }
  return OutFile(path, std::move(draft), force, file);
}

void OutFile::write(std::string_view bytes) {
  if (error_ != 0) return;
  errno = 0;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size())
    error_ = errno != 0 ? errno : EIO;
}

Error OutFile::trouble() const {
  return system_error(
      fmt::format("cannot write '{}': {}; nothing was left there", path_, std::strerror(error_)));
}

Status OutFile::status() const {
  if (error_ != 0) return trouble();
  return done();
}

Status OutFile::complete() {
  if (error_ == 0 && (std::fflush(file_.get()) != 0 || ::fsync(::fileno(file_.get())) != 0))
    error_ = errno;
  file_.reset();
  return status();
}

Status OutFile::publish() {
  // Somebody else may have taken the name since create(). Not every file system can tell.
  const unsigned rule = force_ ? 0 : RENAME_NOREPLACE;
  int result = ::renameat2(AT_FDCWD, draft_.c_str(), AT_FDCWD, path_.c_str(), rule);
  if (result != 0 && errno == EINVAL) result = ::rename(draft_.c_str(), path_.c_str());
  if (result != 0) {
    if (errno == EEXIST) return taken(path_);
    error_ = errno;
    return trouble();
  }
  draft_.clear();
  return done();
}

Status publish_all(std::vector<OutFile>& files) {
  for (OutFile& file : files) {
    if (Status status = file.complete(); !status) return status;
  }
  for (OutFile& file : files) {
    if (Status status = file.publish(); !status) return status;
  }
  return done();
}

}  // namespace drover

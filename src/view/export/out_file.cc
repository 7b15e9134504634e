#include "view/export/out_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace drover {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = 1 << 18;

Error taken(const std::string& path) {
  return invalid_input(fmt::format(
      "--out: '{}' already exists; choose another path, or use --force to replace it", path));
}

}  // namespace

Result<OutFile> OutFile::create(const std::string& path, bool force) {
  std::error_code ignored;
  const fs::file_status there = fs::symlink_status(path, ignored);
  if (fs::is_directory(path, ignored)) {
    return invalid_input(fmt::format("--out: '{}' is a folder; give the name of a file", path));
  }
  if (fs::exists(there)) {
    if (!force) return taken(path);
    // A name such as /dev/stdout cannot be replaced by renaming.
    if (!fs::is_regular_file(path, ignored)) {
      return invalid_input(
          fmt::format("--out: '{}' is not a regular file; choose another path", path));
    }
  }
  auto file = AtomicFile::create(path, {.replace = force, .contended = true});
  if (!file) {
    return system_error(file.error().message +
                        "; check the folder, or choose another path with --out");
  }
  return OutFile(path, std::move(file).value());
}

void OutFile::flush() {
  if (const Status written = file_.write(buffer_); !written) trouble_ = written.error();
  buffer_.clear();
}

void OutFile::write(std::string_view bytes) {
  if (trouble_) return;
  buffer_ += bytes;
  if (buffer_.size() >= kBufferBytes) flush();
}

Status OutFile::status() const {
  if (trouble_) return *trouble_;
  return done();
}

Status OutFile::complete() {
  if (!trouble_) flush();
  if (!trouble_) {
    if (const Status synced = file_.sync(); !synced) trouble_ = synced.error();
  }
  return status();
}

Status OutFile::publish() {
  const Status published = file_.commit();
  if (!published && published.error().kind == ErrorKind::kInvalidInput) return taken(path_);
  return published;
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

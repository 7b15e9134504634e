#include "tasks/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace drover {
namespace {

bool write_all(int file, std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

Status write_file_atomically(const std::string& path, std::span<const char> bytes) {
  // Always the same name: what somebody leaves who is killed here, the next one overwrites.
  const std::string beside = path + ".partial";
  const int file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) {
    return system_error(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  }
  const bool written = write_all(file, bytes) && ::fsync(file) == 0;
  int reason = errno;
  bool fine = ::close(file) == 0 && written;
  if (fine && ::rename(beside.c_str(), path.c_str()) != 0) {
    reason = errno;
    fine = false;
  }
  if (!fine) {
    ::unlink(beside.c_str());
    return system_error(fmt::format("cannot write {}: {}", path, std::strerror(reason)));
  }
  // The new name, too, should survive a power cut; a file system that cannot sync a folder is no
  // error.
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const int folder =
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return done();
}

}  // namespace drover

#include "tasks/data/input_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace drover {
namespace {

// zlib's deflate format cannot shrink data further than this.
constexpr uint64_t kGzipRatioMax = 1032;

gzFile gzip_file(void* file) { return static_cast<gzFile>(file); }

}  // namespace

void InputFile::Close::operator()(void* file) const { gzclose_r(gzip_file(file)); }

InputFile::InputFile(std::string path, void* file, uint64_t size_bound)
    : path_(std::move(path)), file_(file), size_bound_(size_bound) {}

Result<InputFile> InputFile::open(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return system_error(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    return invalid_input(fmt::format("cannot read {}: it is not a file", path));
  }
  errno = 0;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    return system_error(fmt::format("cannot read {}: {}", path,
                                    errno != 0 ? std::strerror(errno) : "out of memory"));
  }
  gzbuffer(file, 256 * 1024);
  return InputFile(path, file, static_cast<uint64_t>(status.st_size) * kGzipRatioMax);
}

Result<size_t> InputFile::read(std::span<uint8_t> out) {
  gzFile file = gzip_file(file_.get());
  size_t done = 0;
  while (done < out.size()) {
    const size_t wanted = std::min<size_t>(out.size() - done, size_t{1} << 30);
    const int got = gzread(file, out.data() + done, static_cast<unsigned>(wanted));
    // At a premature end gzread returns the data so far; only gzerror reports the truncation.
    int code = Z_OK;
    const char* text = gzerror(file, &code);
    if (code == Z_BUF_ERROR) {
      return invalid_input(fmt::format(
          "{} is truncated: its gzip stream ends early. Copy or download the file again.", path_));
    }
    if (got < 0 || code != Z_OK) {
      const std::string reason = code == Z_ERRNO ? std::strerror(errno) : text;
      return invalid_input(
          fmt::format("cannot unpack {}: {}. Copy or download the file again.", path_, reason));
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

Result<std::vector<uint8_t>> InputFile::read_rest(size_t limit) {
  constexpr size_t kPiece = 1 << 20;
  std::vector<uint8_t> bytes;
  while (true) {
    const size_t before = bytes.size();
    bytes.resize(before + kPiece);
    const Result<size_t> got = read(std::span(bytes).subspan(before));
    if (!got.ok()) return got.error();
    bytes.resize(before + got.value());
    if (bytes.size() > limit) {
      return invalid_input(
          fmt::format("{} is too large: it holds more than {} bytes", path_, limit));
    }
    if (got.value() < kPiece) return bytes;
  }
}

}  // namespace drover

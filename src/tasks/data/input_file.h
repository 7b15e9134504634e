// InputFile: reads a file that may be gzip or plain, and detects truncation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace drover {

class InputFile {
 public:
  static Result<InputFile> open(const std::string& path);

  const std::string& path() const { return path_; }

  // Fills `out`. Returns the number of bytes, which is less than out.size() only at the end of the
  // file.
  Result<size_t> read(std::span<uint8_t> out);

  // Reads up to the end. Fails for more than `limit` bytes, so that a small compressed file cannot
  // fill the memory.
  Result<std::vector<uint8_t>> read_rest(size_t limit);

  // An upper bound of the uncompressed size, to validate a header before allocating.
  uint64_t size_bound() const { return size_bound_; }

 private:
  struct Close {
    void operator()(void* file) const;
  };
  InputFile(std::string path, void* file, uint64_t size_bound);

  std::string path_;
  std::unique_ptr<void, Close> file_;  // a gzFile
  uint64_t size_bound_;
};

}  // namespace drover

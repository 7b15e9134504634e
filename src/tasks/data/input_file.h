// InputFile: reads a file that may be gzip or plain, and never takes a truncated one for a whole
// one.
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

  // Fills `out` as far as the file reaches; fewer bytes than asked for mean the end of the file.
  Result<size_t> read(std::span<uint8_t> out);

  // Everything from here to the end. More than `limit` bytes are an error, so that a small
  // compressed file cannot fill the memory.
  Result<std::vector<uint8_t>> read_rest(size_t limit);

  // The most bytes the file can possibly unpack to: lets a reader disbelieve a header before it
  // allocates.
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

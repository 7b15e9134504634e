// OutFile: a file that appears under its name only when it is complete.
//
// What is written goes to a draft beside it, which is removed if the file is never published.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/atomic_file.h"
#include "core/result.h"

namespace drover {

class OutFile {
 public:
  // Refuses a name that is taken, unless `force`.
  static Result<OutFile> create(const std::string& path, bool force);

  // Trouble is kept for status() and complete(); what is written after it is lost anyway.
  void write(std::string_view bytes);
  Status status() const;
  const std::string& path() const { return path_; }

  // All of it is on the disk, still under the draft's name.
  Status complete();
  // REQUIRES: complete() went well.
  Status publish();

 private:
  OutFile(std::string path, AtomicFile file) : path_(std::move(path)), file_(std::move(file)) {}
  void flush();

  std::string path_;
  AtomicFile file_;
  std::string buffer_;
  std::optional<Error> trouble_;  // the first
};

// All of them, or, as far as the disk can tell beforehand, none.
Status publish_all(std::vector<OutFile>& files);

}  // namespace drover

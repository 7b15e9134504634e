// OutFile: a file that appears under its name only when it is complete.
//
// Data goes to a temporary file in the same folder, which is removed if the file is not published.
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
  // Fails if the file exists, unless `force`.
  static Result<OutFile> create(const std::string& path, bool force);

  // status() and complete() report errors; later writes are ignored.
  void write(std::string_view bytes);
  Status status() const;
  const std::string& path() const { return path_; }

  // Writes all data to the disk, still under the temporary name.
  Status complete();
  // Renames the file. REQUIRES: complete() succeeded.
  Status publish();

 private:
  OutFile(std::string path, AtomicFile file) : path_(std::move(path)), file_(std::move(file)) {}
  void flush();

  std::string path_;
  AtomicFile file_;
  std::string buffer_;
  std::optional<Error> trouble_;  // the first error
};

// Publishes all files, or none if one cannot be completed.
Status publish_all(std::vector<OutFile>& files);

}  // namespace drover

// OutFile: a file that appears under its name only when it is complete.
//
// What is written goes to a draft beside it, which is gone again if the file is never published.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace drover {

class OutFile {
 public:
  // Refuses a name that is taken, unless `force`.
  static Result<OutFile> create(const std::string& path, bool force);

  OutFile(OutFile&& other) noexcept;
  OutFile& operator=(OutFile&&) = delete;
  ~OutFile();

  // Trouble is kept for status() and complete(); what is written after it is lost anyway.
  void write(std::string_view bytes);
  Status status() const;
  const std::string& path() const { return path_; }

  // All of it is on the disk, still under the draft's name.
  Status complete();
  // REQUIRES: complete() went well.
  Status publish();

 private:
  OutFile(std::string path, std::string draft, bool force, std::FILE* file);
  Error trouble() const;

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::string draft_;  // empty: moved from, or published
  bool force_;
  std::unique_ptr<std::FILE, Close> file_;
  int error_ = 0;  // the first errno
};

// All of them, or, as far as the disk can tell beforehand, none.
Status publish_all(std::vector<OutFile>& files);

}  // namespace drover

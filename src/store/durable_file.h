// DurableFile: a file that appears under its name only when it is whole and safe on the disk.
//
// It is written beside (<path>.partial), synced, renamed, and the folder synced: whenever the
// process or the machine dies, `path` is what it was before, or the new file, never a part of it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "core/result.h"

namespace drover {

inline constexpr const char* kPartialSuffix = ".partial";

// Asked before everything that changes the disk; false: stop there and leave things as they are, as
// a kill would. Empty: go on.
using GoOn = std::function<bool()>;

class DurableFile {
 public:
  // Whatever a crash has left beside is overwritten.
  static Result<DurableFile> create(const std::string& path, GoOn go_on = {});
  DurableFile(DurableFile&& other) noexcept;
  DurableFile& operator=(DurableFile&&) = delete;
  // Without commit(), whatever was written goes away, unless `go_on` has stopped it.
  ~DurableFile();

  Status write(std::span<const std::byte> bytes);
  // Makes it appear under its name.
  Status commit();

 private:
  DurableFile(std::string path, int file, GoOn go_on);
  bool may_go_on();
  Error trouble(const char* attempted) const;

  std::string path_;
  int file_ = -1;
  GoOn go_on_;
  bool stopped_ = false;
  bool committed_ = false;
};

// Makes a folder, and those above, so that they are still there after a power cut.
Status make_folder(const std::string& path, const GoOn& go_on = {});
// Names in the folder are as they are now, also after a power cut; as far as its file system can
// promise that.
void sync_folder(const std::string& path);

}  // namespace drover

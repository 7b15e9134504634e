// AtomicFile: a file that appears under its name only when it is complete and safe on the disk.
//
// The content is written to a draft beside the file. commit() syncs the draft, renames it and syncs
// the folder. If the process or the machine dies at any time, `path` has its old content or the new
// content, never a part of the new content.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "core/result.h"

namespace drover {

// The suffix of a draft's name. A draft may be left by a crash.
inline constexpr const char* kPartialSuffix = ".partial";

// Called before every operation that changes the disk. If it returns false, writing stops and
// leaves the disk as it is, like a kill at that moment. Empty: never stops.
using KeepWriting = std::function<bool()>;

struct AtomicFileOptions {
  bool replace = true;     // false: commit() fails if a file of that name exists
  bool shared = true;      // false: only this user may read the file
  bool contended = false;  // several processes may write this file at once; the last one wins
  KeepWriting keep_writing = {};
};

class AtomicFile {
 public:
  // Replaces a draft that was left by a crash, unless the file is contended.
  static Result<AtomicFile> create(const std::string& path, AtomicFileOptions options = {});
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  // Removes the draft if it was not committed, unless `keep_writing` stopped the writing.
  ~AtomicFile();

  Status write(std::span<const std::byte> bytes);
  Status write(std::span<const char> bytes) { return write(std::as_bytes(bytes)); }
  // ENSURES: everything written is safe on the disk, under the draft's name. REQUIRES: no write()
  // follows.
  Status sync();
  // Gives the file its name; calls sync() first if necessary. The error is of kind
  // ErrorKind::kInvalidInput if and only if the name is taken.
  Status commit();

 private:
  AtomicFile(std::string path, std::string draft, int file, AtomicFileOptions options);
  bool may_continue();
  Error trouble() const;

  std::string path_;
  std::string draft_;  // empty: moved from, committed or stopped
  int file_ = -1;      // -1: synced
  AtomicFileOptions options_;
};

// Writes a whole file. On failure the old file is unchanged and no draft is left.
Status write_file_atomically(const std::string& path, std::span<const char> bytes,
                             AtomicFileOptions options = {});

// Renames a file unless a file named `to` exists. Returns whether it did; if not, errno has the
// reason. File systems without RENAME_NOREPLACE (some network file systems) replace the file.
bool rename_if_free(const std::string& from, const std::string& to);

// Makes a folder and its parents. ENSURES: they exist after a power failure.
Status make_folder(const std::string& path, const KeepWriting& keep_writing = {});
// Syncs a folder: its names survive a power failure, as far as its file system guarantees that.
void sync_folder(const std::string& path);

}  // namespace drover

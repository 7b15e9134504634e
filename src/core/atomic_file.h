// AtomicFile: a file that appears under its name only when it is whole and safe on the disk.
//
// A draft beside it is written, synced and renamed, and the folder synced: whenever the process or
// the machine dies, `path` is what it was before, or the new file, never a part of it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "core/result.h"

namespace drover {

// The end of a draft's name, after a crash too.
inline constexpr const char* kPartialSuffix = ".partial";

// Asked before everything that changes the disk; false: stop there and leave things as they are, as
// a kill would. Empty: continue.
using KeepWriting = std::function<bool()>;

struct AtomicFileOptions {
  bool replace = true;     // false: commit() fails if there is a file of that name by then
  bool shared = true;      // false: only this user may read it
  bool contended = false;  // several processes may write this file at once; the last one wins
  KeepWriting keep_writing = {};
};

class AtomicFile {
 public:
  // A draft that a crash has left is replaced; a contended one stays.
  static Result<AtomicFile> create(const std::string& path, AtomicFileOptions options = {});
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  // Without commit() the draft is removed, unless `keep_writing` has stopped it.
  ~AtomicFile();

  Status write(std::span<const std::byte> bytes);
  Status write(std::span<const char> bytes) { return write(std::as_bytes(bytes)); }
  // Everything written is safe on the disk, under the draft's name. Nothing can be written any
  // more.
  Status sync();
  // Makes it appear under its name, after sync() if that was not called. Of the errors, only that
  // the name is taken is ErrorKind::kInvalidInput.
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

// All of the file at once. On failure the old file is untouched and nothing is left.
Status write_file_atomically(const std::string& path, std::span<const char> bytes,
                             AtomicFileOptions options = {});

// Renames a file unless there is one named `to`; whether it did, else errno says why not. A file
// system that cannot tell (some network file systems) replaces what is there.
bool rename_if_free(const std::string& from, const std::string& to);

// Makes a folder, and those above, so that they are still there after a power cut.
Status make_folder(const std::string& path, const KeepWriting& keep_writing = {});
// Names in the folder are as they are now, also after a power cut; as far as its file system can
// promise that.
void sync_folder(const std::string& path);

}  // namespace drover

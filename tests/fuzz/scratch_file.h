// ScratchFolder: a folder for inputs that the code reads from files. In memory (/dev/shm) if
// possible. It is removed at the end.
#pragma once

#include <string>
#include <string_view>

namespace drover::fuzz {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  // Writes or overwrites a file; returns its path.
  std::string write(const std::string& name, std::string_view content) const;

 private:
  std::string path_;
};

// The folder of this process.
const ScratchFolder& scratch();

}  // namespace drover::fuzz

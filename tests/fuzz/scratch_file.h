// ScratchFolder: where inputs lie that the code reads from files. In memory where there is such a
// folder, and gone at the end.
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
  // Writes a file, in place of what it was; returns its path.
  std::string write(const std::string& name, std::string_view content) const;

 private:
  std::string path_;
};

// The one of this process.
const ScratchFolder& scratch();

}  // namespace drover::fuzz

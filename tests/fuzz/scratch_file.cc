#include "fuzz/scratch_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fuzz/promise.h"

namespace drover::fuzz {

ScratchFolder::ScratchFolder() {
  const bool in_memory = std::filesystem::is_directory("/dev/shm");
  path_ = std::string(in_memory ? "/dev/shm" : "/tmp") + "/drover-fuzz-XXXXXX";
  promise(::mkdtemp(path_.data()) != nullptr, "a folder can be made");
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ScratchFolder::write(const std::string& name, std::string_view content) const {
  const std::string path = path_ + "/" + name;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  promise(file.good(), "a file can be written");
  return path;
}

const ScratchFolder& scratch() {
  static const ScratchFolder folder;
  return folder;
}

}  // namespace drover::fuzz

// For tests: a temporary folder that is removed with the object.
#pragma once

#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/check.h"

namespace drover {

class TempFolder {
 public:
  TempFolder() : path_((std::filesystem::temp_directory_path() / "drover-XXXXXX").string()) {
    DROVER_CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  // Writes a file, compressed if the name ends in .gz. Returns its path.
  std::string write(const std::string& name, const std::string& content) const {
    const std::string path = file(name);
    if (name.ends_with(".gz")) {
      gzFile out = gzopen(path.c_str(), "wb");
      DROVER_CHECK(out != nullptr);
      DROVER_CHECK(gzwrite(out, content.data(), static_cast<unsigned>(content.size())) ==
                   static_cast<int>(content.size()));
      DROVER_CHECK(gzclose(out) == Z_OK);
    } else {
      std::ofstream(path, std::ios::binary) << content;
    }
    return path;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      found.push_back(entry.path().filename().string());
    }
    return found;
  }

 private:
  std::string path_;
};

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Truncates a file to its first `size` bytes.
inline void truncate_file(const std::string& path, size_t size) {
  std::filesystem::resize_file(path, size);
}

}  // namespace drover

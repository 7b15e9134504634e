#include "tasks/torch_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "tasks/module_entry.h"

namespace drover {

std::vector<std::string> module_candidates() {
  namespace fs = std::filesystem;
  std::error_code trouble;
  const fs::path program = fs::read_symlink("/proc/self/exe", trouble);
  if (trouble) return {};
  const fs::path dir = program.parent_path();
  return {(dir / kModuleFile).string(),
          (dir.parent_path() / "lib" / "drover" / kModuleFile).string(),
          (dir.parent_path() / kModuleFile).string()};
}

Result<TorchModule> open_torch_module() {
  const std::vector<std::string> candidates = module_candidates();
  for (const std::string& path : candidates) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    // RTLD_LOCAL keeps the hundreds of libraries behind libtorch from answering for symbols of
    // ours.
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return TorchModule{path, handle};
    const char* reason = ::dlerror();
    return system_error(
        fmt::format("cannot load {}: {}. If a library is missing, install libtorch: apt-get "
                    "install libtorch1.13 "
                    "libopenblas0-openmp",
                    path, reason != nullptr ? reason : "unknown reason"));
  }
  return system_error(
      fmt::format("the models are not installed: {} is none of {}. Build the target drover_torch, "
                  "or reinstall drover.",
                  kModuleFile, fmt::join(candidates, ", ")));
}

}  // namespace drover

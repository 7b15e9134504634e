#include "tasks/torch_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "tasks/module_entry.h"

#if defined(__SANITIZE_ADDRESS__)
// Asked by LeakSanitizer before it looks. Its tracer (GCC 12) crashes now and then on the
// thread-local storage of libraries that were loaded late, as libtorch's are; so
// processes that have loaded libtorch are not searched for leaks. All other errors are found as
// ever.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libtorch") != std::string::npos) return 1;
  }
  return 0;
}
#endif

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

#include "core/program_module.h"

#include <dlfcn.h>

#include <filesystem>
#include <fstream>

#if defined(__SANITIZE_ADDRESS__)
// LeakSanitizer calls this before it searches for leaks. Its tracer (GCC 12) sometimes crashes on
// the thread-local storage of libraries that were loaded with dlopen, such as libtorch. So
// processes that have loaded libtorch are not searched for leaks. Other errors are still found.
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

std::vector<std::string> module_candidates(const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code trouble;
  const fs::path program = fs::read_symlink("/proc/self/exe", trouble);
  if (trouble) return {};
  const fs::path dir = program.parent_path();
  return {(dir / file).string(), (dir.parent_path() / "lib" / "drover" / file).string(),
          (dir.parent_path() / file).string()};
}

Result<ProgramModule> open_program_module(const ModuleName& name) {
  std::string looked_at;
  for (const std::string& path : module_candidates(name.file)) {
    looked_at += looked_at.empty() ? path : ", " + path;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    // RTLD_LOCAL: symbols of libtorch's hundreds of libraries must not override the program's.
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return ProgramModule{path, handle};
    const char* reason = ::dlerror();
    return system_error("cannot load " + path + ": " +
                        (reason != nullptr ? reason : "unknown reason") +
                        ". If a library is missing, install " + name.needs);
  }
  return system_error(name.what + " not installed: " + name.file + " is none of " + looked_at +
                      ". Build the target " + name.target +
                      (name.built_where.empty() ? "" : " where " + name.built_where) +
                      ", or reinstall drover.");
}

Error module_of_another_build(const ModuleName& name, const ProgramModule& module) {
  return system_error(module.path + " belongs to another build of drover. Build the target " +
                      name.target + " again, or reinstall drover.");
}

}  // namespace drover

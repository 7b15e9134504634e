// ProgramModule: a shared library of Drover that is loaded when it is first needed.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace drover {

// Paths at which a module's file is searched, in order: beside the running program, in
// ../lib/drover, and one folder up (tests run from build/<preset>/bin).
std::vector<std::string> module_candidates(const std::string& file);

// Describes a module in error messages.
struct ModuleName {
  std::string file;    // libdrover_torch.so
  std::string what;    // subject of a sentence: "the models are"
  std::string target;  // CMake target that builds it
  // What the module needs to be loaded, and how to install that.
  std::string needs = "libtorch: apt-get install libtorch1.13 libopenblas0-openmp";
  std::string built_where = {};  // condition under which it is built; empty: always
};

struct ProgramModule {
  std::string path;
  // For dlsym. Never closed, since libtorch cannot be unloaded.
  void* handle = nullptr;
};

// Loads a module with the libraries it needs. Loading libtorch takes about 0.5 s. Starts no thread.
Result<ProgramModule> open_program_module(const ModuleName& name);

// The error for a module that was built from other sources than this program.
Error module_of_another_build(const ModuleName& name, const ProgramModule& module);

}  // namespace drover

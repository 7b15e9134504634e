// ProgramModule: a library of ours that is loaded when it is first needed, found beside the
// program.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace drover {

// Where a module's file may lie, in the order of looking: beside the running program, in
// ../lib/drover, and one folder up (tests run from build/<preset>/bin).
std::vector<std::string> module_candidates(const std::string& file);

// What messages say of a module.
struct ModuleName {
  std::string file;    // libdrover_torch.so
  std::string what;    // "the models are"
  std::string target;  // that builds it
  // What it needs to be loaded, and how to get that.
  std::string needs = "libtorch: apt-get install libtorch1.13 libopenblas0-openmp";
  std::string built_where = {};  // it is not built everywhere
};

struct ProgramModule {
  std::string path;
  void* handle =
      nullptr;  // for dlsym; loaded once and never closed, since libtorch cannot be unloaded
};

// Modules bring large libraries with them: the first with libtorch takes about half a second.
// Starts no thread.
Result<ProgramModule> open_program_module(const ModuleName& name);

// The error for a module whose entry says that it was built from other sources.
Error module_of_another_build(const ModuleName& name, const ProgramModule& module);

}  // namespace drover

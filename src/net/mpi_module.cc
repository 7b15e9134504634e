#include "net/mpi_module.h"

#include <dlfcn.h>

#include <optional>
#include <utility>

#include "net/mpi/mpi_entry.h"

namespace drover {
namespace {

ModuleName mpi_module_name() {
  return {.file = kMpiModuleFile,
          .what = "MPI is",
          .target = "drover_mpi",
          .needs = "Open MPI: apt-get install libopenmpi3",
          .built_where = "CMake finds Open MPI (Debian: libopenmpi-dev)"};
}

}  // namespace

Status check_mpi_module() {
  const auto module = open_program_module(mpi_module_name());
  return module ? done() : Status(module.error());
}

Result<std::shared_ptr<MessagePort>> open_mpi_port() {
  const auto module = open_program_module(mpi_module_name());
  if (!module) return module.error();
  const auto open =
      reinterpret_cast<MpiModuleFunction>(::dlsym(module.value().handle, kMpiModuleFunction));
  MpiRequest request;
  if (open != nullptr) open(request);
  if (!request.answer) return module_of_another_build(mpi_module_name(), module.value());
  return std::move(*request.answer);
}

}  // namespace drover

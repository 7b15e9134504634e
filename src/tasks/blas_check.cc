#include "tasks/blas_check.h"

#include <dlfcn.h>

#include "tasks/torch_module.h"

namespace drover {
namespace {

bool has(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

}  // namespace

std::string_view name_of(BlasThreading threading) {
  switch (threading) {
    case BlasThreading::kOpenMp:
      return "openmp";
    case BlasThreading::kPthreads:
      return "pthreads";
    case BlasThreading::kSingle:
      return "single";
    case BlasThreading::kUnknown:
      return "unknown";
  }
  return "";
}

BlasReport judge_blas(const std::string& openblas_config, const std::string& library) {
  BlasReport report;
  report.library = library;
  if (!openblas_config.empty()) {
    report.name = openblas_config;
    report.is_openblas = true;
    if (has(openblas_config, "USE_OPENMP")) {
      report.threading = BlasThreading::kOpenMp;
    } else if (has(openblas_config, "SINGLE_THREADED")) {
      report.threading = BlasThreading::kSingle;
      report.advice =
          "this OpenBLAS has no locks and returns wrong results to concurrent threads; install "
          "libopenblas0-openmp";
    } else {
      report.threading = BlasThreading::kPthreads;
      report.advice =
          "this OpenBLAS starts its own threads, which slows down workers that share a machine; "
          "install libopenblas0-openmp, or set OPENBLAS_NUM_THREADS=1";
    }
  } else if (has(library, "/blas/libblas.so") || has(library, "librefblas")) {
    report.name = "reference BLAS";
    report.threading = BlasThreading::kSingle;
    report.advice =
        "the reference BLAS is correct but many times slower; install libopenblas0-openmp";
  } else if (has(library, "blis")) {
    report.name = "BLIS";
  } else if (has(library, "libtorch") || has(library, "libmkl")) {
    report.name = "built into libtorch (such as MKL)";
  } else {
    report.name = "unknown";
    report.advice =
        "cannot determine the BLAS of libtorch; if steps are slow, install libopenblas0-openmp";
  }
  return report;
}

Result<BlasReport> check_blas() {
  const Result<ProgramModule> module = open_torch_module();
  if (!module.ok()) return module.error();
  // dlsym searches the handle's libraries in the same order in which libtorch's symbols are
  // resolved.
  void* const config = ::dlsym(module.value().handle, "openblas_get_config");
  void* const product = ::dlsym(module.value().handle, "sgemm_");
  Dl_info where{};
  std::string library;
  if (product != nullptr && ::dladdr(product, &where) != 0 && where.dli_fname != nullptr) {
    library = where.dli_fname;
  }
  using GetConfig = char* (*)();
  const char* text = config != nullptr ? reinterpret_cast<GetConfig>(config)() : nullptr;
  return judge_blas(text != nullptr ? text : "", library);
}

}  // namespace drover

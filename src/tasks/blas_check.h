// Determines which BLAS library libtorch uses. Some are many times slower, and some return wrong
// results to concurrent callers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace drover {

enum class BlasThreading : uint8_t { kOpenMp, kPthreads, kSingle, kUnknown };

struct BlasReport {
  std::string name;     // "OpenBLAS 0.3.21 ..."
  std::string library;  // the file that defines sgemm_, "" if unknown
  bool is_openblas = false;
  BlasThreading threading = BlasThreading::kUnknown;
  std::string advice;  // "" without a problem
};

std::string_view name_of(BlasThreading threading);

// Judges OpenBLAS's own description and the file that defines sgemm_; either may be "" if unknown.
BlasReport judge_blas(const std::string& openblas_config, const std::string& library);

// Loads libtorch, which takes about half a second, and judges its BLAS.
Result<BlasReport> check_blas();

}  // namespace drover

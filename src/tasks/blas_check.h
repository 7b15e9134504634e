// Which BLAS does libtorch multiply matrices with? The wrong one is many times slower, or wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace drover {

enum class BlasThreading : uint8_t { kOpenMp, kPthreads, kSingle, kUnknown };

struct BlasReport {
  std::string name;     // "OpenBLAS 0.3.21 ..."
  std::string library;  // the file that multiplies matrices, "" if unknown
  bool is_openblas = false;
  BlasThreading threading = BlasThreading::kUnknown;
  std::string advice;  // "" if all is well
};

std::string_view name_of(BlasThreading threading);

// What OpenBLAS's own description and the file of its matrix product tell; both may be "" if
// unknown.
BlasReport judge_blas(const std::string& openblas_config, const std::string& library);

// Loads libtorch (half a second) and looks.
Result<BlasReport> check_blas();

}  // namespace drover

// The functions of libdrover_fit.so, as both sides of dlopen see them.
#pragma once

#include <cstdint>
#include <optional>

#include "forecast/learned/fitting.h"

namespace drover {

inline constexpr const char* kFitModuleFile = "libdrover_fit.so";
inline constexpr const char* kFitInterfaceFunction = "drover_fit_interface";
inline constexpr const char* kFitFunction = "drover_fit";

// Identifies the binary interface by the sizes of its types. Raise the number after a change that
// keeps all sizes.
inline constexpr uint64_t kFitInterface = 1 + (sizeof(FitRequest) << 8) +
                                          (sizeof(FitOutcome) << 24) + (sizeof(History) << 40) +
                                          (sizeof(FitPoint) << 56);

// A request to fit, and its result.
struct FitCall {
  const FitRequest* request = nullptr;
  const FitListener* listener = nullptr;
  std::optional<Result<FitOutcome>> answer;
};

using FitInterfaceEntry = uint64_t (*)();
using FitEntry = void (*)(FitCall& call);

}  // namespace drover

extern "C" {
uint64_t drover_fit_interface();
// ENSURES: call.answer is set. REQUIRES: both sides have the same kFitInterface.
void drover_fit(drover::FitCall& call);
}

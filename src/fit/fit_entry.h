// The functions of libdrover_fit.so, as both sides of dlopen see them.
#pragma once

#include <cstdint>
#include <optional>

#include "forecast/learned/fitting.h"

namespace drover {

inline constexpr const char* kFitModuleFile = "libdrover_fit.so";
inline constexpr const char* kFitInterfaceFunction = "drover_fit_interface";
inline constexpr const char* kFitFunction = "drover_fit";

// Differs between builds that disagree about what crosses the border, as far as sizes can tell;
// raise the number when they cannot.
inline constexpr uint64_t kFitInterface = 1 + (sizeof(FitRequest) << 8) +
                                          (sizeof(FitOutcome) << 24) + (sizeof(History) << 40) +
                                          (sizeof(FitPoint) << 56);

// Says what to fit and receives what was fitted.
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
// Always leaves an answer. REQUIRES: the two sides agree about kFitInterface.
void drover_fit(drover::FitCall& call);
}

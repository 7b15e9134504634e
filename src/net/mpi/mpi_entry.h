// The interface of libdrover_mpi.so, for both sides of dlopen.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/result.h"
#include "net/message_port.h"

namespace drover {

inline constexpr const char* kMpiModuleFile = "libdrover_mpi.so";
inline constexpr const char* kMpiModuleFunction = "drover_open_mpi";

// To be raised when a type in the interface changes: MessagePort, Result.
inline constexpr uint64_t kMpiInterface = 1;

struct MpiRequest {
  uint64_t interface =
      kMpiInterface;  // the first field, so that modules of other builds can read it
  std::optional<Result<std::shared_ptr<MessagePort>>> answer;
};

using MpiModuleFunction = void (*)(MpiRequest& request);

}  // namespace drover

extern "C" {
// Leaves request.answer empty if kMpiInterface differs between the two sides.
void drover_open_mpi(drover::MpiRequest& request);
}

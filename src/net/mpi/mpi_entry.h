// The one function of libdrover_mpi.so, as both sides of dlopen see it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/result.h"
#include "net/message_port.h"

namespace drover {

inline constexpr const char* kMpiModuleFile = "libdrover_mpi.so";
inline constexpr const char* kMpiModuleFunction = "drover_open_mpi";

// Raise it when what crosses the border changes: MessagePort, Result.
inline constexpr uint64_t kMpiInterface = 1;

struct MpiRequest {
  uint64_t interface = kMpiInterface;  // first, so that a module of another build can read it
  std::optional<Result<std::shared_ptr<MessagePort>>> answer;
};

using MpiModuleFunction = void (*)(MpiRequest& request);

}  // namespace drover

extern "C" {
// Leaves request.answer empty if the two sides are of different builds.
void drover_open_mpi(drover::MpiRequest& request);
}

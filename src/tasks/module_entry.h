// The interface of libdrover_torch.so, shared by both sides of dlopen.
//
// The models are in a separate module because loading libtorch takes half a second, which would
// delay `drover --help`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/result.h"
#include "core/task_spec.h"
#include "tasks/data/dataset.h"
#include "worker/task.h"

namespace drover {

inline constexpr const char* kModuleFile = "libdrover_torch.so";
inline constexpr const char* kModuleFunction = "drover_make_task";

// The version of the interface. It includes the sizes of the types that are passed; increment the
// number for changes that do not affect sizes.
inline constexpr uint64_t kModuleInterface =
    2 + (sizeof(Dataset) << 8) + (sizeof(TaskSpec) << 24) + (sizeof(GradientReport) << 40);

// The task to build, and the result.
struct ModuleRequest {
  uint64_t interface = kModuleInterface;  // first, so that a module of another build can read it
  TaskSpec spec;
  std::shared_ptr<const Dataset> data;  // shared, never copied
  std::optional<Result<std::unique_ptr<Task>>> answer;
};

using ModuleFunction = void (*)(ModuleRequest& request);

}  // namespace drover

extern "C" {
// Leaves request.answer empty if the versions of the interface differ.
void drover_make_task(drover::ModuleRequest& request);
}

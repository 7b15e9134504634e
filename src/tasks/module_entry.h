// The one function of libdrover_torch.so, as both sides of dlopen see it.
//
// The models live in a module of their own because loading libtorch takes half a second, which
// `drover --help` should not cost.
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

// Differs between builds that disagree about what crosses the border, as far as sizes can tell;
// raise the number when they cannot.
inline constexpr uint64_t kModuleInterface =
    2 + (sizeof(Dataset) << 8) + (sizeof(TaskSpec) << 24) + (sizeof(GradientReport) << 40);

// Says what to build and receives what was built.
struct ModuleRequest {
  uint64_t interface = kModuleInterface;  // first, so that a module of another build can read it
  TaskSpec spec;
  std::shared_ptr<const Dataset> data;  // one copy, whoever holds it
  std::optional<Result<std::unique_ptr<Task>>> answer;
};

using ModuleFunction = void (*)(ModuleRequest& request);

}  // namespace drover

extern "C" {
// Leaves request.answer empty if the two sides are of different builds.
void drover_make_task(drover::ModuleRequest& request);
}

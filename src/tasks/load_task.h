// Builds the task a spec names: reads its data, loads libtorch, makes the model.
#pragma once

#include <memory>

#include "core/result.h"
#include "core/task_spec.h"
#include "worker/task.h"

namespace drover {

// Names are checked and data is read before libtorch is loaded, so mistakes are told quickly.
// Starts no thread: a launcher may fork its workers afterwards, and they share the data and
// libtorch.
Result<std::unique_ptr<Task>> load_task(const TaskSpec& spec);

}  // namespace drover

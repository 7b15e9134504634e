// Builds the task of a spec: reads its data, loads libtorch, creates the model.
#pragma once

#include <memory>

#include "core/result.h"
#include "core/task_spec.h"
#include "worker/task.h"

namespace drover {

// Checks names and reads data before it loads libtorch, so errors are reported quickly. Starts no
// thread, so a launcher may fork its workers afterwards; they share the data and libtorch.
Result<std::unique_ptr<Task>> load_task(const TaskSpec& spec);

}  // namespace drover

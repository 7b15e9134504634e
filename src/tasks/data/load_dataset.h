// Finds and reads the data set of a task: a built-in one, or a folder or file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/task_spec.h"
#include "tasks/data/dataset.h"

namespace drover {

// The built-in values of `--data`.
std::vector<std::string_view> known_datasets();

// The default folder of data sets: $XDG_DATA_HOME/drover, or ~/.local/share/drover.
std::string default_data_dir();

// Built-in names take precedence (use ./mnist for a folder of that name). The format of a folder or
// file is detected: IDX, CIFAR-10 batches, LIBSVM or text, each gzip or plain.
Result<Dataset> load_dataset(const TaskSpec& spec);

}  // namespace drover

// Finds and reads the data set a task names: one of ours, or a folder or file of the user's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/task_spec.h"
#include "tasks/data/dataset.h"

namespace drover {

// The names `--data` knows besides folders and files.
std::vector<std::string_view> known_datasets();

// Where `drover data get` keeps data sets unless told otherwise: $XDG_DATA_HOME/drover, or
// ~/.local/share/drover.
std::string default_data_dir();

// A known name is looked up first (say ./mnist for a folder of that name); then the folder or file
// is asked what it holds: IDX, CIFAR-10 batches, LIBSVM or text, each gzip or plain.
Result<Dataset> load_dataset(const TaskSpec& spec);

}  // namespace drover

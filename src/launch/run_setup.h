// Preparation of a run: its default run file, its header, and checks of its files and addresses.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "job/job.h"
#include "store/run_header.h"

namespace drover {

// runs/20260701-120000-<what>.db, with a number if that exists.
std::string default_run_file(std::string_view what, std::time_t now);

// The checks are made before data is read and processes are started. This one: whether a run can be
// recorded in `path`.
Status check_run_file(const std::string& path);
// Whether a model can be saved to `path`, which was given with `flag`.
Status check_model_path(std::string_view flag, const std::string& path);
// Whether the folder of the data sets exists.
Status check_data_dir(const TaskSpec& task);

// `about`: names and values that describe the task, for people.
RunHeader make_run_header(const Job& job,
                          const std::vector<std::pair<std::string, std::string>>& about,
                          const std::string& command_line, std::time_t now);

// Whether the coordinator may listen where the job says (record.listen with Transport::kTcp).
Status check_listen(const JobCluster& cluster);

}  // namespace drover

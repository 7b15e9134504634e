// Before a run starts: where it is recorded, what its header says, and whether its files can be
// written and read.
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

// runs/20260701-120000-<what>.db, with a number if that is taken.
std::string default_run_file(std::string_view what, std::time_t now);

// Known before the data is read and anybody is started: that the run can be recorded there.
Status check_run_file(const std::string& path);
// ... that a model can be saved there; `flag` is the one that named the place.
Status check_model_path(std::string_view flag, const std::string& path);
// ... that the data sets are where the job says.
Status check_data_dir(const TaskSpec& task);

// `about`: what a person would like to know of the task.
RunHeader make_run_header(const Job& job,
                          const std::vector<std::pair<std::string, std::string>>& about,
                          const std::string& command_line, std::time_t now);

// Whether the coordinator may listen where the job says (record.listen with Transport::kTcp).
Status check_listen(const JobCluster& cluster);

}  // namespace drover

// What commands that make a run share: where it is recorded, what its header says, and how its end
// is told.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "node/job.h"
#include "node/launcher.h"
#include "store/run_header.h"

namespace drover {

// Tells the trouble on standard error; the exit status for it.
int fail(const Error& error, int status = kExitFailed);

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

// As a shell takes it: in quotes if it has anything but the usual characters.
std::string quoted(const std::string& path);

// A line that says how a run that has not completed goes on; empty if there is no checkpoint.
std::string how_to_go_on(const std::string& checkpoints);

// What became of the run, from its own record: the same words as `drover runs` prints. Returns the
// exit status.
int report_run(const std::string& run_file, bool json);

}  // namespace drover

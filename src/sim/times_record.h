// TimesRecord: recorded run-times, with lower bounds for the censored ones. Models are fitted to
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/step_times.h"
#include "store/trace.h"

namespace drover {

struct TimesRecord {
  std::vector<std::string> paths;     // of the files that were read
  uint32_t workers = 0;               // of each step
  std::vector<StepTimes> steps;       // numbered from 0, without gaps
  std::vector<std::string> warnings;  // for the user, about how the files were read
};

// Reads a run file or a trace, depending on the content. A run file has lower bounds for workers
// whose run-time is not known. In a trace, a worker without a time took no part in the step.
Result<TimesRecord> read_record(const std::string& path);
// Reads a run file, and refuses any other file.
Result<TimesRecord> read_run_record(const std::string& path);

// Concatenates the records as if they were one run. An error if their numbers of workers differ.
// REQUIRES: parts is not empty.
Result<TimesRecord> join_records(std::vector<TimesRecord> parts);

// Keeps only the steps in the range, and numbers them from 0. An error if there are none.
Status keep_steps(TimesRecord& record, const StepRange& range);

}  // namespace drover

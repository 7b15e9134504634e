// TimesRecord: recorded run-times together with those that were cut short: what models are fitted
// to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/step_times.h"
#include "store/trace.h"

namespace drover {

struct TimesRecord {
  std::vector<std::string> paths;     // of the files it comes from
  uint32_t workers = 0;               // every step has so many
  std::vector<StepTimes> steps;       // numbered from 0, without gaps
  std::vector<std::string> warnings;  // what the user should know of how it was read
};

// A run file, with bounds for those of whom nothing else is known, or a trace, in which who is not
// recorded took no part; whichever the content says it is.
Result<TimesRecord> read_record(const std::string& path);
// The same, refusing whatever is no run file.
Result<TimesRecord> read_run_record(const std::string& path);

// One after the other, as if they were one run. Refused if they are not of equally many workers.
// REQUIRES: parts is not empty.
Result<TimesRecord> join_records(std::vector<TimesRecord> parts);

// Keeps the steps in the range alone, and numbers them from 0. An error if there are none.
Status keep_steps(TimesRecord& record, const StepRange& range);

}  // namespace drover

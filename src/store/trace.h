// Trace: recorded run-times of workers, steps by workers, for replaying policies on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace drover {

inline constexpr uint32_t kTraceWorkersMax = 1'000'000;
// Whatever the unit, no real run-time is outside; within, sums and quotients stay finite.
inline constexpr double kTraceTimeMin = 1e-15;
inline constexpr double kTraceTimeMax = 1e18;

struct Trace {
  std::string path;
  std::vector<std::string> workers;   // their names: "w0", "w1", ...
  std::vector<double> times;          // one row a step; NaN: not recorded
  std::vector<std::string> warnings;  // what the user should know of how it was read

  Step steps() const { return times.size() / workers.size(); }
  std::span<const double> row(Step step) const {
    return std::span(times).subspan(step * workers.size(), workers.size());
  }
};

// Half open, counted from 0; absent ends mean the first and the last row.
struct StepRange {
  Step from = 0;
  Step to = 0;
  bool open_ended = true;  // `to` was not given
};

// "100:200", "100:", ":200" or ":".
Result<StepRange> parse_step_range(std::string_view text);

// Reads a CSV file (`step,w0,w1,...`, blank: not recorded), an NPY file (a matrix of floats, NaN:
// not recorded), or a run file, whichever the content says it is. Memory: the numbers, and a line
// or so of text. Every row has somebody recorded, and at least two workers are there.
Result<Trace> read_trace(const std::string& path);

// By its content; an error if it is not a file or cannot be opened.
Result<bool> is_run_file(const std::string& path);

// Keeps the rows in the range alone. An error if there are no such rows.
Status keep_steps(Trace& trace, const StepRange& range);

// --- For readers of single kinds.

// Where the range ends in a record of so many steps; an error if not all of it is there.
Result<Step> end_of(const StepRange& range, Step steps, const std::string& path);

// What is wrong with the content: "cannot use the trace 'jobs.csv', line 7: ..."; `where` may be
// "".
Error trace_trouble(const std::string& path, std::string_view where, const std::string& what);

// Why `time` will not do as a run-time, or "" if it will.
std::string time_trouble(double time);

// That no row and no column is without any run-time; `first_line`: of row 0, for messages about
// text; -1 if rows are to be named instead.
Status check_nothing_is_empty(const Trace& trace, int64_t first_line);

}  // namespace drover

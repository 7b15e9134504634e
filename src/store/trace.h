// Trace: recorded run-times, steps by workers, for the replay of policies.
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
// Limits on a run-time in any unit. Within them, sums and quotients are finite.
inline constexpr double kTraceTimeMin = 1e-15;
inline constexpr double kTraceTimeMax = 1e18;

struct Trace {
  std::string path;
  std::vector<std::string> workers;   // names: "w0", "w1", ...
  std::vector<double> times;          // one row per step; NaN: not recorded
  std::vector<std::string> warnings;  // for the user, about the content

  Step steps() const { return times.size() / workers.size(); }
  std::span<const double> row(Step step) const {
    return std::span(times).subspan(step * workers.size(), workers.size());
  }
};

// A half-open range of rows, counted from 0.
struct StepRange {
  Step from = 0;
  Step to = 0;
  bool open_ended = true;  // up to the last row; `to` is not used
};

// "100:200", "100:", ":200" or ":".
Result<StepRange> parse_step_range(std::string_view text);

// Reads a CSV file (`step,w0,w1,...`, blank: not recorded), an NPY file (a matrix of floats, NaN:
// not recorded), or a run file; the content decides which. Needs memory for the numbers and little
// more. ENSURES: every row has a run-time, and there are at least two workers.
Result<Trace> read_trace(const std::string& path);

// Decides by the content. An error if it is not a file or cannot be opened.
Result<bool> is_run_file(const std::string& path);

// Removes the rows outside the range. An error if the range is not within the trace.
Status keep_steps(Trace& trace, const StepRange& range);

// --- For the readers of the formats.

// The end of the range in a trace of `steps` steps. An error if the range is not within it.
Result<Step> end_of(const StepRange& range, Step steps, const std::string& path);

// An error about the content: "cannot use the trace 'jobs.csv', line 7: ...". `where` may be "".
Error trace_trouble(const std::string& path, std::string_view where, const std::string& what);

// Why `time` is not a valid run-time; "" if it is valid.
std::string time_trouble(double time);

// An error if a row or a column has no run-time. `first_line` is the line of row 0, for messages
// about text files; -1: messages name the row.
Status check_nothing_is_empty(const Trace& trace, int64_t first_line);

}  // namespace drover

// Traces: a file is refused, or every step has the run-time of at least one worker.
#include <algorithm>
#include <cmath>

#include "fuzz/promise.h"
#include "fuzz/scratch_file.h"
#include "fuzz/targets.h"
#include "store/npy.h"
#include "store/trace.h"

namespace drover::fuzz {

void trace(Bytes input) {
  if (text_of(input).starts_with("SQLite format 3")) return;  // a run file; SQLite has its own
  const auto read = read_trace(scratch().write("trace", text_of(input)));
  if (!read) {
    promise(!read.error().message.empty(), "a refusal says why");
    return;
  }
  const Trace& taken = read.value();
  promise(taken.workers.size() >= 2, "there are at least two workers");
  promise(taken.times.size() == taken.steps() * taken.workers.size(), "every row is complete");
  for (Step step = 0; step < taken.steps(); ++step) {
    const auto row = taken.row(step);
    promise(std::ranges::any_of(row, [](double time) { return !std::isnan(time); }),
            "every step has a worker's run-time");
    promise(std::ranges::all_of(row,
                                [](double time) {
                                  return std::isnan(time) ||
                                         (time >= kTraceTimeMin && time <= kTraceTimeMax);
                                }),
            "every run-time makes sense");
  }
}

}  // namespace drover::fuzz

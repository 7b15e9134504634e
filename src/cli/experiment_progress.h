// The progress of an experiment: on a terminal one line that is rewritten, elsewhere a line for
// each ended cell.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "core/time.h"
#include "experiment/cell_loop.h"
#include "experiment/experiment_plan.h"

namespace drover {

// Estimates the time left from the mean duration of ended cells in the same place. Reads no clock;
// callers pass durations.
class TimeEstimate {
 public:
  TimeEstimate(const std::vector<Cell>& cells, size_t jobs) : cells_(cells), jobs_(jobs) {}

  void on_ended(const EndedCell& ended);
  // Seconds until all cells in `left` have ended. `running` has the seconds that cells have run so
  // far, by cell. Negative until a cell has ended.
  double left(const std::vector<size_t>& left, const std::map<size_t, double>& running) const;

 private:
  struct Took {
    double seconds = 0.0;
    size_t cells = 0;
  };

  const std::vector<Cell>& cells_;
  const size_t jobs_;
  std::map<size_t, Took> places_;
  Took all_;
};

// The state of an experiment at one moment.
struct GridState {
  size_t cells = 0;
  size_t done = 0;    // includes cells that an earlier invocation ran
  size_t failed = 0;  // of the cells done
  std::vector<std::string> running;
  double seconds_left = -1.0;  // negative: unknown
};

// One line of at most `width` columns; the least important parts are omitted if it is narrow.
std::string grid_line(const GridState& state, size_t width);

class ExperimentProgress {
 public:
  ExperimentProgress(const ExperimentFile& file, const std::vector<Cell>& cells,
                     const std::vector<size_t>& todo, size_t jobs, ProgressStyle style);

  void on_change(const std::vector<size_t>& running);
  void on_ended(const EndedCell& ended);
  void finish();

  size_t failed() const { return state_.failed; }

 private:
  double seconds_left() const;

  const ExperimentFile& file_;
  const std::vector<Cell>& cells_;
  StatusLine line_;
  TimeEstimate estimate_;
  std::vector<size_t> left_;
  std::map<size_t, TimePoint> began_;
  GridState state_;
};

}  // namespace drover

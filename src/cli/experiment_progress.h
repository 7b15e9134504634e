// The progress of an experiment over its whole grid: one line that is rewritten on a terminal,
// elsewhere a plain line for each cell.
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

// How long what is left will take, judged by cells of the same place that have ended. Knows no
// clock: it is told how long things took.
class TimeEstimate {
 public:
  TimeEstimate(const std::vector<Cell>& cells, size_t jobs) : cells_(cells), jobs_(jobs) {}

  void on_ended(const EndedCell& ended);
  // Seconds for the cells in `left`, of which some have been running for so long already (by
  // cell); negative while nothing has ended that would tell.
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

// What is known at one moment.
struct GridState {
  size_t cells = 0;
  size_t done = 0;    // in all, also in an earlier life
  size_t failed = 0;  // of those
  std::vector<std::string> running;
  double seconds_left = -1.0;  // negative: not known
};

// One line of at most `width` columns: on a narrow terminal what matters least is left out.
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

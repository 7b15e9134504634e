// The progress of a fit on standard error: one line that is rewritten on a terminal, or a plain
// line every few seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/progress.h"
#include "core/time.h"
#include "forecast/learned/fitting.h"

namespace drover {

// The state of a fit at one moment.
struct FitState {
  std::string what;         // "shared model"
  uint32_t iterations = 0;  // the limit
  uint32_t iteration = 0;
  std::optional<FitPoint> judged;  // the last evaluation
  double seconds = 0.0;            // since the start
};

// One line of at most `width` columns.
std::string fit_line(const FitState& state, size_t width);

class FitProgress {
 public:
  explicit FitProgress(ProgressStyle style) : line_(style) {}

  void begin(const std::string& what, uint32_t iterations);
  // `judged` is null unless this iteration was evaluated.
  void iterated(uint32_t iteration, const FitPoint* judged);
  // Shows another activity, on a terminal only.
  void doing(const std::string& what);
  // Removes the line from the terminal. Call before other output.
  void clear() { line_.clear(); }

 private:
  StatusLine line_;
  FitState state_;
  TimePoint began_{};
};

}  // namespace drover

// How far a fit has got, on standard error: one line that is rewritten, or plain lines now and
// then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/progress.h"
#include "core/time.h"
#include "forecast/learned/fitting.h"

namespace drover {

// What is known of a fit at one moment.
struct FitState {
  std::string what;         // "shared model"
  uint32_t iterations = 0;  // at most
  uint32_t iteration = 0;
  std::optional<FitPoint> judged;  // last
  double seconds = 0.0;            // since it began
};

// One line of at most `width` columns.
std::string fit_line(const FitState& state, size_t width);

class FitProgress {
 public:
  explicit FitProgress(ProgressStyle style) : line_(style) {}

  void begin(const std::string& what, uint32_t iterations);
  void iterated(uint32_t iteration, const FitPoint* judged);
  // Something else that takes a moment.
  void doing(const std::string& what);
  // Before anything else is printed.
  void clear() { line_.clear(); }

 private:
  StatusLine line_;
  FitState state_;
  TimePoint began_{};
};

}  // namespace drover

#include "cli/fit_progress.h"

#include <fmt/core.h>

#include <cmath>

#include "node/clock.h"

namespace drover {
namespace {

std::string elbo_text(const FitPoint& point) {
  std::string text = fmt::format("ELBO {:.3f}", point.train_elbo);
  if (std::isfinite(point.held_out_elbo)) {
    text += fmt::format(", held out {:.3f}", point.held_out_elbo);
  }
  return text;
}

std::string left(const FitState& state) {
  if (state.iteration == 0 || state.iteration >= state.iterations) return "";
  // A fit may stop before the limit.
  return "at most " +
         time_left(state.seconds / state.iteration * (state.iterations - state.iteration));
}

}  // namespace

std::string fit_line(const FitState& state, size_t width) {
  return join_parts({{progress_bar(state.iteration, state.iterations), 1},
                     {"fitting the " + state.what, 2},
                     {fmt::format("iteration {}/{}", state.iteration, state.iterations), 5},
                     {state.judged ? elbo_text(*state.judged) : "", 4},
                     {left(state), 3}},
                    width);
}

void FitProgress::begin(const std::string& what, uint32_t iterations) {
  state_ = {.what = what, .iterations = iterations, .judged = {}};
  began_ = clock_now();
}

void FitProgress::iterated(uint32_t iteration, const FitPoint* judged) {
  state_.iteration = iteration;
  const bool first = judged != nullptr && !state_.judged;
  if (judged != nullptr) state_.judged = *judged;
  if (!first && !line_.due()) return;
  state_.seconds = seconds(clock_now() - began_);
  line_.show([&](size_t width) { return fit_line(state_, width); });
}

void FitProgress::doing(const std::string& what) {
  if (line_.style() != ProgressStyle::kTerminal) return;
  line_.show([&](size_t width) { return join_parts({{what, 1}}, width); });
}

}  // namespace drover

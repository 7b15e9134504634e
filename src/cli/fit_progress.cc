#include "cli/fit_progress.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <utility>

#include "node/clock.h"

namespace drover {
namespace {

constexpr Duration kBetweenLines = std::chrono::seconds(3);
constexpr Duration kBetweenRewrites = std::chrono::milliseconds(100);

std::string elbo_text(const FitPoint& point) {
  std::string text = fmt::format("ELBO {:.3f}", point.train_elbo);
  if (std::isfinite(point.held_out_elbo)) {
    text += fmt::format(", held out {:.3f}", point.held_out_elbo);
  }
  return text;
}

std::string left(const FitState& state) {
  if (state.iteration == 0 || state.iteration >= state.iterations) return "";
  // It may well stop earlier.
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
  last_shown_ = began_;
}

void FitProgress::iterated(uint32_t iteration, const FitPoint* judged) {
  state_.iteration = iteration;
  const bool first = judged != nullptr && !state_.judged;
  if (judged != nullptr) state_.judged = *judged;
  if (style_ == ProgressStyle::kNone) return;
  const TimePoint now = clock_now();
  const bool terminal = style_ == ProgressStyle::kTerminal;
  if (!first && now - last_shown_ < (terminal ? kBetweenRewrites : kBetweenLines)) return;
  last_shown_ = now;
  state_.seconds = seconds(now - began_);
  show(fit_line(state_, terminal ? terminal_width() - 1 : 1000));
}

void FitProgress::doing(const std::string& what) {
  if (style_ == ProgressStyle::kTerminal) show(what);
}

void FitProgress::show(const std::string& line) {
  on_line_ = style_ == ProgressStyle::kTerminal;
  fmt::print(stderr, "{}{}{}", on_line_ ? "\r\033[K" : "", line, on_line_ ? "" : "\n");
  std::fflush(stderr);
}

void FitProgress::clear() {
  if (std::exchange(on_line_, false)) std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace drover

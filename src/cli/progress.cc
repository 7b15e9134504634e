#include "cli/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "cli/same_gradients.h"
#include "core/event_text.h"
#include "node/clock.h"

namespace drover {
namespace {

constexpr Duration kBetweenLines = std::chrono::seconds(2);
constexpr Duration kBetweenRewrites = std::chrono::milliseconds(100);
constexpr size_t kFileWidth = 1000;  // limit for lines that go to a file
constexpr double kSmoothing = 0.1;   // weight of the newest step
constexpr size_t kNarrow = 100;      // narrower lines have a short bar
constexpr size_t kShortBar = 8;
constexpr Duration kLongStep = std::chrono::seconds(2);  // a worker may be stuck in a longer step

std::string run_time_left(const ProgressState& state) {
  if (state.step_seconds <= 0.0 || state.steps_done == 0 || state.steps_total >= kEndless)
    return "";
  const auto steps = static_cast<double>(state.steps_total - state.steps_done);
  // The open step counts as partly done, but an unusually long one must not shorten the rest.
  const double over = std::min(seconds(state.open_for), state.step_seconds);
  return time_left(std::max(0.0, steps * state.step_seconds - over));
}

std::string loss_text(double loss) {
  if (!std::isfinite(loss)) return "loss -";
  return std::abs(loss) < 1e6 ? fmt::format("loss {:.4f}", loss) : fmt::format("loss {:.3g}", loss);
}

class ProgressView : public RunView {
 public:
  ProgressView(Step steps_total, ProgressStyle style, Pace pace)
      : line_(style), pace_(pace), last_step_(clock_now()) {
    state_.steps_total = steps_total;
    state_.loss = std::nan("");
  }

  Status on_peer(const PeerRecord&) override { return done(); }
  Status on_decision(const DecisionRecord&) override { return done(); }
  Status on_late_arrival(const ArrivalRecord&) override { return done(); }
  Status on_abandoned(const AbandonRecord&) override { return done(); }

  Status on_step(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals) override {
    const TimePoint now = clock_now();
    take_pace(pace_ == Pace::kRecorded ? step.elapsed : now - last_step_);
    last_step_ = now;
    state_.steps_done = step.step + 1;
    if (step.contributors > 0 && std::isfinite(step.loss)) {
      // One step without a loss must not hide those of all later ones.
      const double share = std::isfinite(state_.loss) ? kSmoothing : 1.0;
      state_.loss = share == 1.0 ? step.loss : state_.loss + share * (step.loss - state_.loss);
      const double known = std::isnan(state_.train_accuracy) ? 1.0 : share;
      state_.train_accuracy =
          known == 1.0 ? step.accuracy
                       : state_.train_accuracy + known * (step.accuracy - state_.train_accuracy);
    }
    if (same_gradients_.add(step)) say(SameGradients::kWarning);
    state_.last_worker = step.last_worker;
    state_.waited = waited_for_last(arrivals);
    return done();
  }

  Status on_evaluation(const EvaluationRecord& evaluation) override {
    state_.test_accuracy = evaluation.accuracy;
    return done();
  }

  Status on_event(const EventRecord& event) override {
    switch (event.kind()) {
      case EventKind::kEnded:
      case EventKind::kExited:
        return done();
      case EventKind::kReached:
      case EventKind::kPullShare:
      case EventKind::kLeft:
      case EventKind::kJoined:
      case EventKind::kCheckpointKept:
      case EventKind::kResumed:
        if (line_.style() == ProgressStyle::kNone) return done();
        break;
      case EventKind::kLost:
      case EventKind::kBackedOff:
      case EventKind::kRefused:
      case EventKind::kOutlier:
      case EventKind::kCheckpointFailed:
      case EventKind::kRestarted:
        break;
    }
    say(fmt::format("step {}: {}", event.step, event_line(event)));
    return done();
  }

  Status on_end(const RunEnd& end) override {
    ended_ = true;
    if (line_.style() != ProgressStyle::kNone && state_.steps_done > 0) print_line();
    line_.keep();
    if (end.outcome == RunOutcome::kFailed)
      fmt::print(stderr, "drover: the run failed: {}\n", end.reason);
    if (end.outcome == RunOutcome::kInterrupted) fmt::print(stderr, "drover: {}\n", end.reason);
    std::fflush(stderr);
    return done();
  }

  void tick() override {
    // Before the first step ends, the line only reports a long wait.
    const bool begun = state_.steps_done > 0 || clock_now() - last_step_ >= kLongStep;
    if (begun && line_.due()) print_line();
  }

 private:
  static Duration waited_for_last(const std::vector<ArrivalRecord>& arrivals) {
    Duration last{};
    Duration before{};
    for (const ArrivalRecord& arrival : arrivals) {
      if (arrival.censored) continue;
      if (arrival.run_time > last) {
        before = std::exchange(last, arrival.run_time);
      } else {
        before = std::max(before, arrival.run_time);
      }
    }
    return arrivals.size() > 1 ? last - before : Duration::zero();
  }

  void take_pace(Duration took) {
    // Before the first step the wall clock measures the startup.
    if (took <= Duration::zero() || (pace_ == Pace::kClock && state_.steps_done == 0)) return;
    overall_.add(seconds(took));
    const double share = recent_ == 0.0 ? 1.0 : kSmoothing;
    recent_ += share * (seconds(took) - recent_);
    state_.steps_per_second = 1.0 / recent_;
    state_.step_seconds = overall_.mean();
  }

  void print_line() {
    state_.open_for = ended_ ? Duration::zero() : clock_now() - last_step_;
    line_.show([&](size_t width) { return progress_line(state_, width); });
  }

  void say(const std::string& text) {
    line_.clear();
    fmt::print(stderr, "drover: {}\n", text);
    std::fflush(stderr);
  }

  StatusLine line_;
  SameGradients same_gradients_;
  const Pace pace_;
  ProgressState state_;
  StepPace overall_;
  double recent_ = 0.0;  // seconds per step
  TimePoint last_step_;
  bool ended_ = false;
};

}  // namespace

std::string progress_line(const ProgressState& state, size_t width) {
  // The total is unknown if the workers' scripts determine the end.
  const bool endless = state.steps_total >= kEndless;
  std::string bar;
  if (!endless) {
    bar = width < kNarrow ? progress_bar(state.steps_done, state.steps_total, kShortBar)
                          : progress_bar(state.steps_done, state.steps_total);
  }
  const std::string step = endless ? fmt::format("step {}", state.steps_done)
                                   : fmt::format("step {}/{}", state.steps_done, state.steps_total);
  const std::string waiting = state.open_for >= kLongStep
                                  ? fmt::format("waiting for {:.0f} s", seconds(state.open_for))
                                  : fmt::format("waited {:.1f} ms for worker {}",
                                                1e3 * seconds(state.waited), state.last_worker);
  if (state.steps_done == 0) {
    return join_parts({{bar, 1}, {step, 3}, {state.open_for >= kLongStep ? waiting : "", 2}},
                      width);
  }
  std::string accuracy;
  if (state.test_accuracy) {
    accuracy = fmt::format("test {:.2f} %", 100.0 * *state.test_accuracy);
  } else if (!std::isnan(state.train_accuracy)) {
    accuracy = fmt::format("train {:.1f} %", 100.0 * state.train_accuracy);
  }
  return join_parts({{bar, 3},
                     {step, 7},
                     {loss_text(state.loss), 6},
                     {accuracy, 2},
                     {fmt::format("{:.1f} steps/s", state.steps_per_second), 1},
                     {run_time_left(state), 5},
                     {waiting, 4}},
                    width);
}

std::string join_parts(std::vector<ProgressPart> parts, size_t width) {
  std::erase_if(parts, [](const ProgressPart& part) { return part.text.empty(); });
  const auto joined = [&] {
    std::string line;
    for (const ProgressPart& part : parts) line += (line.empty() ? "" : "  ") + part.text;
    return line;
  };
  while (columns_of(joined()) > width) {
    parts.erase(std::min_element(
        parts.begin(), parts.end(),
        [](const ProgressPart& x, const ProgressPart& y) { return x.importance < y.importance; }));
  }
  return joined();
}

std::string progress_bar(uint64_t done, uint64_t total, size_t columns) {
  if (total == 0) return "";
  const size_t full = columns * std::min(done, total) / total;
  return "[" + std::string(full, '=') + std::string(columns - full, ' ') + "]";
}

std::string time_left(double seconds) {
  const auto left = static_cast<int64_t>(std::ceil(seconds));
  if (left >= 3600)
    return fmt::format("{}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60);
  return fmt::format("{}:{:02} left", left / 60, left % 60);
}

size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // not a UTF-8 continuation byte
  }));
}

std::string erase_line(size_t columns, size_t width) {
  const size_t rows_above = columns == 0 ? 0 : (columns - 1) / std::max<size_t>(1, width);
  const std::string up = rows_above == 0 ? "" : fmt::format("\033[{}A", rows_above);
  return "\r" + up + (rows_above == 0 ? "\033[K" : "\033[J");
}

bool StatusLine::due() const {
  if (style_ == ProgressStyle::kNone) return false;
  return clock_now() - last_shown_ >=
         (style_ == ProgressStyle::kTerminal ? kBetweenRewrites : kBetweenLines);
}

void StatusLine::show(const std::function<std::string(size_t)>& line) {
  if (style_ == ProgressStyle::kNone) return;
  last_shown_ = clock_now();
  if (style_ == ProgressStyle::kTerminal) {
    const size_t width = terminal_width();
    // The last column stays free because some terminals wrap after a character in it.
    const std::string text = line(width - 1);
    fmt::print(stderr, "{}{}", erase_line(columns_, width), text);
    columns_ = columns_of(text);
  } else {
    fmt::print(stderr, "{}\n", line(kFileWidth));
  }
  std::fflush(stderr);
}

void StatusLine::clear() {
  if (columns_ > 0) fmt::print(stderr, "{}", erase_line(columns_, terminal_width()));
  columns_ = 0;
  std::fflush(stderr);
}

void StatusLine::keep() {
  if (columns_ > 0) std::fputc('\n', stderr);
  columns_ = 0;
  std::fflush(stderr);
}

// m_n = m_{n-1} + w_n (x_n - m_{n-1}) with w_n = 3 / (n + 2), so the weight of step i of n is about
// proportional to (i / n)^2. The variance of the mean is about 9 / 5n times that of one step.
void StepPace::add(double seconds) {
  ++steps_;
  mean_ += 3.0 / static_cast<double>(steps_ + 2) * (seconds - mean_);
}

ProgressStyle choose_progress_style(bool quiet) {
  if (quiet) return ProgressStyle::kNone;
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string(terminal) == "dumb";
  return ::isatty(STDERR_FILENO) != 0 && !dumb ? ProgressStyle::kTerminal : ProgressStyle::kLines;
}

std::unique_ptr<RunView> make_progress_view(Step steps_total, ProgressStyle style, Pace pace) {
  return std::make_unique<ProgressView>(steps_total, style, pace);
}

}  // namespace drover

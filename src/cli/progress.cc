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

#include "node/clock.h"

namespace drover {
namespace {

constexpr Duration kBetweenLines = std::chrono::seconds(2);
constexpr double kSmoothing = 0.1;  // weight of the newest step
constexpr size_t kBarColumns = 20;
constexpr Duration kLongStep = std::chrono::seconds(2);  // from here on somebody may be stuck

std::string run_time_left(const ProgressState& state) {
  if (state.steps_per_second <= 0.0 || state.steps_done == 0) return "";
  return time_left(static_cast<double>(state.steps_total - state.steps_done) /
                   state.steps_per_second);
}

std::string loss_text(double loss) {
  if (!std::isfinite(loss)) return "loss -";
  return std::abs(loss) < 1e6 ? fmt::format("loss {:.4f}", loss) : fmt::format("loss {:.3g}", loss);
}

class ProgressView : public RunView {
 public:
  ProgressView(Step steps_total, ProgressStyle style, Pace pace) : style_(style), pace_(pace) {
    state_.steps_total = steps_total;
    state_.loss = std::nan("");
  }

  Status on_peer(const PeerRecord&) override { return done(); }
  Status on_decision(const DecisionRecord&) override { return done(); }
  Status on_late_arrival(const ArrivalRecord&) override { return done(); }
  Status on_abandoned(const AbandonRecord&) override { return done(); }

  Status on_step(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals) override {
    const TimePoint now = clock_now();
    const Duration took = pace_ == Pace::kRecorded ? step.elapsed : now - last_step_;
    const bool first = pace_ == Pace::kRecorded ? state_.steps_done == 0 : state_.steps_done == 1;
    if (took > Duration::zero() && (pace_ == Pace::kRecorded || state_.steps_done > 0)) {
      step_seconds_ += (first ? 1.0 : kSmoothing) * (seconds(took) - step_seconds_);
      state_.steps_per_second = 1.0 / step_seconds_;
    }
    last_step_ = now;
    state_.steps_done = step.step + 1;
    if (step.contributors > 0 && std::isfinite(step.loss)) {
      // One step without a loss must not hide those of all later ones.
      const double share = std::isfinite(state_.loss) ? kSmoothing : 1.0;
      state_.loss = share == 1.0 ? step.loss : state_.loss + share * (step.loss - state_.loss);
      state_.train_accuracy += share * (step.accuracy - state_.train_accuracy);
    }
    state_.last_worker = step.last_worker;
    state_.waited = waited_for_last(arrivals);
    return done();
  }

  Status on_evaluation(const EvaluationRecord& evaluation) override {
    state_.test_accuracy = evaluation.accuracy;
    return done();
  }

  Status on_event(const EventRecord& event) override {
    if (event.kind == "ended" || event.kind == "exit") return done();
    const bool trouble = event.kind != "reached" && event.kind != "pull";
    if (!trouble && style_ == ProgressStyle::kNone) return done();
    const std::string who =
        event.peer.empty() ? "" : event.peer + (event.kind == "lost" ? " was lost: " : ": ");
    say(fmt::format("step {}: {}{}", event.step, who, event.text));
    return done();
  }

  Status on_end(const RunEnd& end) override {
    ended_ = true;
    if (style_ == ProgressStyle::kTerminal) std::fputs("\r\033[K", stderr);
    if (style_ != ProgressStyle::kNone && state_.steps_done > 0) print_line();
    if (style_ == ProgressStyle::kTerminal) std::fputc('\n', stderr);
    if (end.outcome == RunOutcome::kFailed)
      fmt::print(stderr, "drover: the run failed: {}\n", end.reason);
    if (end.outcome == RunOutcome::kInterrupted) fmt::print(stderr, "drover: {}\n", end.reason);
    std::fflush(stderr);
    return done();
  }

  void tick() override {
    if (style_ == ProgressStyle::kNone || state_.steps_done == 0) return;
    if (style_ == ProgressStyle::kLines && clock_now() - last_print_ < kBetweenLines) return;
    print_line();
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

  void print_line() {
    last_print_ = clock_now();
    state_.open_for = ended_ ? Duration::zero() : last_print_ - last_step_;
    if (style_ == ProgressStyle::kTerminal) {
      fmt::print(stderr, "\r\033[K{}", progress_line(state_, terminal_width() - 1));
    } else {
      fmt::print(stderr, "{}\n", progress_line(state_, 1000));
    }
    std::fflush(stderr);
  }

  void say(const std::string& text) {
    if (style_ == ProgressStyle::kTerminal) std::fputs("\r\033[K", stderr);
    fmt::print(stderr, "drover: {}\n", text);
    std::fflush(stderr);
  }

  const ProgressStyle style_;
  const Pace pace_;
  ProgressState state_;
  double step_seconds_ = 0.0;
  TimePoint last_print_{};
  TimePoint last_step_{};
  bool ended_ = false;
};

}  // namespace

std::string progress_line(const ProgressState& state, size_t width) {
  const std::string accuracy = state.test_accuracy
                                   ? fmt::format("test {:.2f} %", 100.0 * *state.test_accuracy)
                                   : fmt::format("train {:.1f} %", 100.0 * state.train_accuracy);
  const std::string waiting = state.open_for >= kLongStep
                                  ? fmt::format("waiting for {:.0f} s", seconds(state.open_for))
                                  : fmt::format("waited {:.1f} ms for worker {}",
                                                1e3 * seconds(state.waited), state.last_worker);
  return join_parts({{progress_bar(state.steps_done, state.steps_total), 1},
                     {fmt::format("step {}/{}", state.steps_done, state.steps_total), 7},
                     {loss_text(state.loss), 6},
                     {accuracy, 3},
                     {fmt::format("{:.1f} steps/s", state.steps_per_second), 2},
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
  while (joined().size() > width) {
    parts.erase(std::min_element(
        parts.begin(), parts.end(),
        [](const ProgressPart& x, const ProgressPart& y) { return x.importance < y.importance; }));
  }
  return joined();
}

std::string progress_bar(uint64_t done, uint64_t total) {
  if (total == 0) return "";
  const size_t full = kBarColumns * std::min(done, total) / total;
  return "[" + std::string(full, '=') + std::string(kBarColumns - full, ' ') + "]";
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

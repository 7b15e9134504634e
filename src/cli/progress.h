// The progress of a run on standard error: one line that is rewritten on a terminal, or a plain
// line every few seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/run_record.h"
#include "launch/launcher.h"

namespace drover {

// The state of a run at one moment.
struct ProgressState {
  Step steps_total = 0;
  Step steps_done = 0;
  double loss = 0.0;  // smoothed over recent steps; NaN: unknown
  double train_accuracy = std::numeric_limits<double>::quiet_NaN();  // likewise
  std::optional<double> test_accuracy;
  double steps_per_second = 0.0;  // in recent steps
  double step_seconds = 0.0;      // long-term mean, for the time left; 0: unknown
  WorkerId last_worker = 0;       // the last to arrive in the last step
  Duration waited{};              // time in the last step in which only that worker was missing
  Duration open_for{};            // how long the current step has been open
};

// One line of at most `width` columns; the least important parts are omitted if it is narrow.
std::string progress_line(const ProgressState& state, size_t width);

// --- Parts of progress lines

struct ProgressPart {
  std::string text;  // empty: omitted
  int importance;    // the part with the lowest is omitted first if the line is too long
};
// Joins the parts in this order, with spaces between.
std::string join_parts(std::vector<ProgressPart> parts, size_t width);
// "[=====               ]"; empty if `total` is 0.
std::string progress_bar(uint64_t done, uint64_t total, size_t columns = 20);
// "1:05 left"
std::string time_left(double seconds);
// Columns of the terminal at standard error; 80 if it is no terminal.
size_t terminal_width();

// Columns of the text on a terminal: one for each UTF-8 character.
size_t columns_of(std::string_view text);

enum class ProgressStyle : uint8_t { kNone, kLines, kTerminal };

// The style for standard error: kNone if `quiet`, kTerminal if it is a terminal, else kLines.
ProgressStyle choose_progress_style(bool quiet);

// The control codes that erase a line of `columns` columns from a terminal that is `width` wide
// now. A terminal that has become narrower since has wrapped the line onto several rows.
std::string erase_line(size_t columns, size_t width);

// The status line of an activity on standard error. On a terminal it is rewritten in place;
// elsewhere it is a plain line every few seconds; with kNone nothing is printed. It has no colors,
// so NO_COLOR needs no support.
class StatusLine {
 public:
  explicit StatusLine(ProgressStyle style) : style_(style) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  ProgressStyle style() const { return style_; }
  // Whether it is time for show(): a few times a second on a terminal.
  bool due() const;
  // `line` returns a text of at most the given number of columns.
  void show(const std::function<std::string(size_t)>& line);
  // Removes the line from the terminal. Call before other output.
  void clear();
  // Keeps the line on the terminal; later output begins below it.
  void keep();

 private:
  const ProgressStyle style_;
  TimePoint last_shown_{};
  size_t columns_ = 0;  // of the line on the terminal; 0: there is none
};

// The mean duration of a step, for the time left. The last third of the steps has most of the
// weight. So a slow start is forgotten, and the variance still falls with the number of steps.
class StepPace {
 public:
  void add(double seconds);
  double mean() const { return mean_; }  // 0 before the first add()

 private:
  uint64_t steps_ = 0;
  double mean_ = 0.0;
};

// The source of step durations: the recorded times, or the wall clock if the times are virtual.
enum class Pace : uint8_t { kRecorded, kClock };

// Writes to standard error.
std::unique_ptr<RunView> make_progress_view(Step steps_total, ProgressStyle style,
                                            Pace pace = Pace::kRecorded);

}  // namespace drover

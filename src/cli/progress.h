// The progress of a run on the terminal: one line that is rewritten, or plain lines now and then
// elsewhere.
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

// What is known of a run at one moment.
struct ProgressState {
  Step steps_total = 0;
  Step steps_done = 0;
  double loss = 0.0;  // smoothed over recent steps; NaN: not known
  double train_accuracy = std::numeric_limits<double>::quiet_NaN();  // likewise
  std::optional<double> test_accuracy;
  double steps_per_second = 0.0;  // recent
  double step_seconds = 0.0;      // for the time left: steadier than that; 0: not known
  WorkerId last_worker = 0;       // waited for in the last step
  Duration waited{};              // the part of the last step in which only it was missing
  Duration open_for{};            // how long the step after it has been open
};

// One line of at most `width` columns: on a narrow terminal what matters least is left out.
std::string progress_line(const ProgressState& state, size_t width);

// --- What lines of progress are made of.

struct ProgressPart {
  std::string text;  // empty: left out
  int importance;    // what is lowest goes first when there is no room
};
// In that order, with spaces between.
std::string join_parts(std::vector<ProgressPart> parts, size_t width);
// "[=====               ]"; empty if there is nothing to do.
std::string progress_bar(uint64_t done, uint64_t total, size_t columns = 20);
// "1:05 left"
std::string time_left(double seconds);
// Of standard error; 80 if it is none.
size_t terminal_width();

// How wide it is on a terminal, where every character of UTF-8 takes one column.
size_t columns_of(std::string_view text);

enum class ProgressStyle : uint8_t { kNone, kLines, kTerminal };

// What suits standard error: kNone if quiet, kTerminal if somebody is looking.
ProgressStyle choose_progress_style(bool quiet);

// What takes a line of so many columns off a terminal that is `width` wide now. It may have been
// wider when the line was written: terminals then break the line in two or more.
std::string erase_line(size_t columns, size_t width);

// The one line of an activity on standard error: on a terminal it is rewritten in place, elsewhere
// it is a plain line every few seconds, and nothing where nobody wants to know. Never a colour, so
// there is nothing that NO_COLOR would have to turn off.
class StatusLine {
 public:
  explicit StatusLine(ProgressStyle style) : style_(style) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  ProgressStyle style() const { return style_; }
  // Whether it is time for show(): a few times a second on a terminal.
  bool due() const;
  // `line` is asked for one of at most so many columns.
  void show(const std::function<std::string(size_t)>& line);
  // Before anything else is printed.
  void clear();
  // The line stays, and what is printed next begins below it.
  void keep();

 private:
  const ProgressStyle style_;
  TimePoint last_shown_{};
  size_t columns_ = 0;  // on the terminal now
};

// How long a step takes, for a forecast of the end: a mean in which the last third of the steps so
// far has most of the weight. It forgets how things were at first (a warm-up), and still gets
// steadier the longer a run goes, so that the time left converges.
class StepPace {
 public:
  void add(double seconds);
  double mean() const { return mean_; }  // 0: nothing was added

 private:
  uint64_t steps_ = 0;
  double mean_ = 0.0;
};

// How fast it goes: by the times recorded, or by the clock on the wall where those are made up.
enum class Pace : uint8_t { kRecorded, kClock };

// Writes to standard error.
std::unique_ptr<RunView> make_progress_view(Step steps_total, ProgressStyle style,
                                            Pace pace = Pace::kRecorded);

}  // namespace drover

// The progress of a run on the terminal: one line that is rewritten, or plain lines now and then
// elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/run_record.h"
#include "node/launcher.h"

namespace drover {

// What is known of a run at one moment.
struct ProgressState {
  Step steps_total = 0;
  Step steps_done = 0;
  double loss = 0.0;            // smoothed over recent steps; NaN: not known
  double train_accuracy = 0.0;  // likewise
  std::optional<double> test_accuracy;
  double steps_per_second = 0.0;  // recent
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
std::string progress_bar(uint64_t done, uint64_t total);
// "1:05 left"
std::string time_left(double seconds);
// Of standard error; 80 if it is none.
size_t terminal_width();

enum class ProgressStyle : uint8_t { kNone, kLines, kTerminal };

// What suits standard error: kNone if quiet, kTerminal if somebody is looking.
ProgressStyle choose_progress_style(bool quiet);

// How fast it goes: by the times recorded, or by the clock on the wall where those are made up.
enum class Pace : uint8_t { kRecorded, kClock };

// Writes to standard error.
std::unique_ptr<RunView> make_progress_view(Step steps_total, ProgressStyle style,
                                            Pace pace = Pace::kRecorded);

}  // namespace drover

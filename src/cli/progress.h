// The progress of a run on the terminal: one line that is rewritten, or plain lines now and then
// elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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

enum class ProgressStyle : uint8_t { kNone, kLines, kTerminal };

// What suits standard error: kNone if quiet, kTerminal if somebody is looking.
ProgressStyle choose_progress_style(bool quiet);

// How fast it goes: by the times recorded, or by the clock on the wall where those are made up.
enum class Pace : uint8_t { kRecorded, kClock };

// Writes to standard error.
std::unique_ptr<RunView> make_progress_view(Step steps_total, ProgressStyle style,
                                            Pace pace = Pace::kRecorded);

}  // namespace drover

// Output of a replay: its decisions as CSV, or a run file like that of a real run.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "core/result.h"
#include "sim/replay.h"
#include "store/run_writer.h"

namespace drover {

// CSV with the columns step,policy,cutoff,elapsed,oracle_cutoff,reason; one row per step and
// policy.
class DecisionsFile {
 public:
  // Replaces an existing file.
  static Result<std::unique_ptr<DecisionsFile>> create(const std::string& path);

  // `first_row`: the row of the trace that was replayed as step 0.
  Status add(std::string_view policy, Step first_row, const ReplayedStep& step);
  // Returns whether all rows were written.
  Status close();

 private:
  explicit DecisionsFile(std::string path);
  Error trouble() const;

  const std::string path_;
  std::ofstream file_;
};

// Records steps, decisions and arrivals of a replay, as a run does. Times are taken as seconds.
class ReplayRecorder {
 public:
  ReplayRecorder(RunWriter& writer, double overhead) : writer_(writer), overhead_(overhead) {}

  Status add(const ReplayedStep& replayed);
  // `interrupted_because` is empty if the replay has completed.
  Status finish(const std::string& interrupted_because = "");

 private:
  RunWriter& writer_;
  const double overhead_;
  Duration now_{};
  uint32_t late_ = 0;  // late arrivals of the previous step
};

// Returns an error if the times of this trace are too large for a run file, which has nanoseconds
// in 64 bits.
Status check_can_be_saved(const Trace& trace, double overhead);

}  // namespace drover

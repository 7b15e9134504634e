// What a replay leaves behind, if asked to: its decisions as CSV, or a run file as of a real run.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "core/result.h"
#include "sim/replay.h"
#include "store/run_writer.h"

namespace drover {

// The columns step,policy,cutoff,elapsed,oracle_cutoff,reason; a row for every step and policy.
class DecisionsFile {
 public:
  // A file that is there is replaced.
  static Result<std::unique_ptr<DecisionsFile>> create(const std::string& path);

  // `first_row` is the trace's row that was replayed as step 0.
  Status add(std::string_view policy, Step first_row, const ReplayedStep& step);
  // Tells whether everything has reached the file.
  Status close();

 private:
  explicit DecisionsFile(std::string path);
  Error trouble() const;

  const std::string path_;
  std::ofstream file_;
};

// Steps, decisions and arrivals of a replay, as a run records them. Times count as seconds.
class ReplayRecorder {
 public:
  ReplayRecorder(RunWriter& writer, double overhead) : writer_(writer), overhead_(overhead) {}

  Status add(const ReplayedStep& replayed);
  // `interrupted_because` is empty if the replay got to its end.
  Status finish(const std::string& interrupted_because = "");

 private:
  RunWriter& writer_;
  const double overhead_;
  Duration now_{};
  uint32_t late_ = 0;  // in the step before
};

// Whether the times of this trace can be told in a run file, which counts nanoseconds in 64 bits.
Status check_can_be_saved(const Trace& trace, double overhead);

}  // namespace drover

// RunRecorder: passes records of a run to its observers, and ends the run when an observer fails.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/run_records.h"
#include "core/peer.h"
#include "core/run_record.h"

namespace drover {

class RunRecorder {
 public:
  // `training_since`: when training began, if that was in an earlier incarnation of the
  // coordinator. `fail` is called once, with the first failure, and must end the run.
  RunRecorder(std::vector<RunObserver*> observers, std::optional<TimePoint> training_since,
              std::function<void(const std::string& why)> fail)
      : observers_(std::move(observers)),
        training_before_(training_since),
        fail_(std::move(fail)) {}

  void record(const RunRecord& record);
  // The peak memory of a peer in bytes, for the record of the run's end.
  void note_memory(const Peer& peer, uint64_t bytes) { memory_[peer] = bytes; }
  void record_end(RunEnd end);
  // Treats an error elsewhere, such as of flushing the run file, as a failure to record.
  void check(const Status& status);

  // The end as it was recorded. If recording failed, the outcome is a failure, also if training was
  // completed.
  const RunEnd& end() const { return end_; }
  // Why recording failed; nothing: it has not.
  const std::optional<std::string>& failure() const { return failure_; }
  std::optional<TimePoint> training_since() const {
    return training_before_ ? training_before_ : training_here_;
  }

 private:
  void note_failure(RunEnd& end) const;

  const std::vector<RunObserver*> observers_;
  const std::optional<TimePoint> training_before_;  // in an earlier incarnation
  const std::function<void(const std::string&)> fail_;
  std::optional<TimePoint> training_here_;  // in this one
  std::map<Peer, uint64_t> memory_;
  RunEnd end_;
  std::optional<std::string> failure_;
};

}  // namespace drover

// SimulationRecord: what became of a simulated run: what observers and the witness are told, and
// how it ended.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/run_records.h"
#include "core/result.h"
#include "core/run_record.h"
#include "sim/event_queue.h"
#include "sim/witness.h"

namespace drover {

class SimulationRecord {
 public:
  // What is handed in outlives this; `witness` may be null.
  SimulationRecord(std::vector<RunObserver*> observers, Witness* witness, const EventQueue& time)
      : observers_(std::move(observers)), witness_(witness), time_(time) {}

  // Called with the reason, the first time that something cannot be recorded.
  void on_failure(std::function<void(const std::string&)> call) { failed_ = std::move(call); }

  void record(const RunRecord& record);
  // The run ends, though no coordinator says so.
  void end(const RunEnd& end);
  // The result of recording something.
  void check(const Status& recorded);
  // The run ends: part of it breaks the protocol.
  void breach(const std::string& what);

  bool is_over() const { return end_ || !breach_.empty(); }
  bool is_breached() const { return !breach_.empty(); }
  // REQUIRES: is_over(). An Error: the breach.
  Result<RunEnd> result() const;

 private:
  const std::vector<RunObserver*> observers_;
  Witness* const witness_;
  const EventQueue& time_;
  std::function<void(const std::string&)> failed_;
  std::string failure_;  // to record the run
  std::string breach_;
  std::optional<RunEnd> end_;
};

}  // namespace drover

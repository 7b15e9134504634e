// SimulationRecord: passes the record of a simulated run to its observers, violations of the
// protocol to the witness, and keeps how the run ended.
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
  // `witness` may be null. REQUIRES: the references and pointers outlive this object.
  SimulationRecord(std::vector<RunObserver*> observers, Witness* witness, const EventQueue& time)
      : observers_(std::move(observers)), witness_(witness), time_(time) {}

  // `call` is called with the reason when an observer fails for the first time.
  void on_failure(std::function<void(const std::string&)> call) { failed_ = std::move(call); }

  void record(const RunRecord& record);
  // Ends the run without a coordinator.
  void end(const RunEnd& end);
  // Handles the result of an observer.
  void check(const Status& recorded);
  // Ends the run because of a violation of the protocol.
  void breach(const std::string& what);

  bool is_over() const { return end_ || !breach_.empty(); }
  bool is_breached() const { return !breach_.empty(); }
  // An Error describes the breach. REQUIRES: is_over().
  Result<RunEnd> result() const;

 private:
  const std::vector<RunObserver*> observers_;
  Witness* const witness_;
  const EventQueue& time_;
  std::function<void(const std::string&)> failed_;
  std::string failure_;  // of an observer
  std::string breach_;
  std::optional<RunEnd> end_;
};

}  // namespace drover

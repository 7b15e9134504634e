#include "sim/simulation_record.h"

namespace drover {

void SimulationRecord::record(const RunRecord& record) {
  for (RunObserver* observer : observers_) check(deliver(record, *observer));
  if (const auto* end = std::get_if<RunEnd>(&record)) end_ = *end;
}

void SimulationRecord::end(const RunEnd& end) {
  for (RunObserver* observer : observers_) check(observer->on_end(end));
  end_ = end;
}

void SimulationRecord::check(const Status& recorded) {
  if (recorded || !failure_.empty()) return;
  failure_ = recorded.error().message;
  if (failed_) failed_(failure_);
}

void SimulationRecord::breach(const std::string& what) {
  if (breach_.empty()) breach_ = what;
  if (witness_ != nullptr) witness_->on_breach(what, time_.now());
}

Result<RunEnd> SimulationRecord::result() const {
  if (!breach_.empty()) return Error{ErrorKind::kSystem, breach_};
  RunEnd end = *end_;
  // A run that could not be recorded to its end has not completed, whatever was trained.
  if (!failure_.empty()) {
    end.outcome = RunOutcome::kFailed;
    end.reason = failure_;
    end.cause = EndCause::kRecordFailed;
  }
  return end;
}

}  // namespace drover

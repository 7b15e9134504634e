#include "node/run_recorder.h"

#include "node/clock.h"

namespace drover {

void RunRecorder::record(const RunRecord& record) {
  if (!training_here_ && std::holds_alternative<DecisionRecord>(record))
    training_here_ = clock_now();
  for (RunObserver* observer : observers_) check(deliver(record, *observer));
}

void RunRecorder::record_end(RunEnd end) {
  end.memory_bytes.assign(memory_.begin(), memory_.end());
  // The elapsed time includes earlier incarnations.
  if (training_before_) end.elapsed += training_here_.value_or(clock_now()) - *training_before_;
  for (RunObserver* observer : observers_) {
    note_failure(end);
    check(observer->on_end(end));
  }
  note_failure(end);
  end_ = end;
}

void RunRecorder::note_failure(RunEnd& end) const {
  if (!failure_ || end.outcome == RunOutcome::kFailed) return;
  end.outcome = RunOutcome::kFailed;
  end.cause = EndCause::kRecordFailed;
  end.reason = *failure_;
}

void RunRecorder::check(const Status& status) {
  if (status || failure_) return;
  failure_ = status.error().message;  // set first: the failure is recorded with the same observers
  fail_(*failure_);
}

}  // namespace drover

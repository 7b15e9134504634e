// RunRecord: one entry of a run's record. A coordinator produces them in order of time.
#pragma once

#include <variant>

#include "coordinator/step_ledger.h"
#include "core/run_record.h"

namespace drover {

using RunRecord = std::variant<PeerRecord, DecisionRecord, StepSummary, ArrivalRecord,
                               AbandonRecord, EvaluationRecord, EventRecord, RunEnd>;

// Calls the observer's method for this kind of record. An ArrivalRecord (outside a StepSummary) is
// the true run-time of a worker that was recorded as censored before.
Status deliver(const RunRecord& record, RunObserver& observer);

}  // namespace drover

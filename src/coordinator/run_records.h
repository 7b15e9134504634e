// RunRecord: something for the record of a run, in the order in which it happened.
#pragma once

#include <variant>

#include "coordinator/step_ledger.h"
#include "core/run_record.h"

namespace drover {

using RunRecord = std::variant<PeerRecord, DecisionRecord, StepSummary, ArrivalRecord,
                               AbandonRecord, EvaluationRecord, EventRecord, RunEnd>;

// An ArrivalRecord by itself is the true run-time of somebody recorded as censored earlier.
Status deliver(const RunRecord& record, RunObserver& observer);

}  // namespace drover

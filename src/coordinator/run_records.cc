#include "coordinator/run_records.h"

namespace drover {

Status deliver(const RunRecord& record, RunObserver& observer) {
  struct Visitor {
    RunObserver& to;
    Status operator()(const PeerRecord& peer) const { return to.on_peer(peer); }
    Status operator()(const DecisionRecord& decision) const { return to.on_decision(decision); }
    Status operator()(const StepSummary& summary) const {
      return to.on_step(summary.step, summary.arrivals);
    }
    Status operator()(const ArrivalRecord& late) const { return to.on_late_arrival(late); }
    Status operator()(const AbandonRecord& abandoned) const { return to.on_abandoned(abandoned); }
    Status operator()(const EvaluationRecord& evaluation) const {
      return to.on_evaluation(evaluation);
    }
    Status operator()(const EventRecord& event) const { return to.on_event(event); }
    Status operator()(const RunEnd& end) const { return to.on_end(end); }
  };
  return std::visit(Visitor{observer}, record);
}

}  // namespace drover

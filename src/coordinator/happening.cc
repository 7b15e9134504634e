#include "coordinator/run_records.h"

namespace drover {

Status tell(const RunRecord& happening, RunObserver& observer) {
  struct Teller {
    RunObserver& to;
    Status operator()(const PeerRecord& peer) const { return to.on_peer(peer); }
    Status operator()(const DecisionRecord& decision) const { return to.on_decision(decision); }
    Status operator()(const StepSummary& story) const {
      return to.on_step(story.step, story.arrivals);
    }
    Status operator()(const ArrivalRecord& late) const { return to.on_late_arrival(late); }
    Status operator()(const AbandonRecord& abandoned) const { return to.on_abandoned(abandoned); }
    Status operator()(const EvaluationRecord& evaluation) const {
      return to.on_evaluation(evaluation);
    }
    Status operator()(const EventRecord& event) const { return to.on_event(event); }
    Status operator()(const RunEnd& end) const { return to.on_end(end); }
  };
  return std::visit(Teller{observer}, happening);
}

}  // namespace drover

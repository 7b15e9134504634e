// Silent: an observer of a run that ignores all records, for tests.
#pragma once

#include "core/run_record.h"

namespace drover {

template <typename Observer>
class Silent : public Observer {
 public:
  Status on_peer(const PeerRecord&) override { return done(); }
  Status on_decision(const DecisionRecord&) override { return done(); }
  Status on_step(const StepRecord&, const std::vector<ArrivalRecord>&) override { return done(); }
  Status on_late_arrival(const ArrivalRecord&) override { return done(); }
  Status on_abandoned(const AbandonRecord&) override { return done(); }
  Status on_evaluation(const EvaluationRecord&) override { return done(); }
  Status on_event(const EventRecord&) override { return done(); }
  Status on_end(const RunEnd&) override { return done(); }
};

}  // namespace drover

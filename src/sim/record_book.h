// RecordBook: what is recorded of a run must be in order, and agree with itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/run_record.h"

namespace drover {

class RecordBook {
 public:
  Step recorded() const { return recorded_; }  // steps
  Step decided() const { return decided_; }    // one beyond the last

  // The run continues from `version`: later steps have not been.
  void restart(Version version);

  // Each of the following returns what is wrong; empty: nothing.
  std::string on_decision(const DecisionRecord& decision);
  std::string on_step(const StepRecord& step);
  // Of each step, after on_step(). REQUIRES: not asynchronous.
  std::string on_arrivals(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals);
  std::string on_late_arrival(const ArrivalRecord& arrival);

 private:
  Step recorded_ = 0;
  Step decided_ = 0;
  std::map<Step, uint32_t> alive_;                         // as decided
  std::map<Step, std::map<WorkerId, Duration>> censored_;  // and the bound told
};

}  // namespace drover

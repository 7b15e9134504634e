// RecordChecker: checks that the record of a run is in order and consistent.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/run_record.h"

namespace drover {

class RecordChecker {
 public:
  Step recorded() const { return recorded_; }  // steps
  Step decided() const { return decided_; }    // steps

  // The run continues from `version`: later steps are discarded.
  void restart(Version version);

  // Each of the following returns a description of the violation, or an empty string.
  std::string on_decision(const DecisionRecord& decision);
  std::string on_step(const StepRecord& step);
  // Called for each step after on_step(). REQUIRES: the run is not asynchronous.
  std::string on_arrivals(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals);
  std::string on_late_arrival(const ArrivalRecord& arrival);

 private:
  Step recorded_ = 0;
  Step decided_ = 0;
  std::map<Step, uint32_t> alive_;                         // workers, as decided
  std::map<Step, std::map<WorkerId, Duration>> censored_;  // with the recorded bound
};

}  // namespace drover

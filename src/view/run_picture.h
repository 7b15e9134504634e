// RunPicture: what a page shows of a run, gathered from its file as the file grows.
//
// Reading again costs in proportion to what is new. The last steps are read again each time, since
// the true times of stragglers are written into steps that have closed; a straggler that comes more
// than a few dozen steps later stays a lower bound here. Knows no clock.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/run_reader.h"
#include "view/run_snapshot.h"
#include "view/run_sums.h"

namespace drover {

class RunPicture {
 public:
  // Reads on, at most about so many arrivals; a later call may be given another reader of the same
  // file. True: there is more to read. After an Error the next call begins where this one did.
  Result<bool> read(const RunReader& reader, uint64_t arrivals_max = 200'000);

  // `quiet`: how long ago the file was written.
  RunSnapshot snapshot(Duration quiet) const;

 private:
  struct StepWithArrivals {
    StepFacts facts;
    std::vector<RecordedArrival> arrivals;
  };

  Status read_small_tables(const RunReader& reader);
  Result<bool> read_steps(const RunReader& reader, uint64_t arrivals_max);
  // Everything is read anew if workers turn out to be others than was thought.
  void arrange(uint32_t workers);
  std::vector<std::string> nodes_of(uint32_t workers) const;
  RunProgress progress_of(const RunSums& sums, Duration quiet) const;
  std::vector<WorkerLine> workers_of(const RunSums& sums) const;
  std::vector<DecisionLine> last_decisions(const RunSums& sums) const;

  std::string path_;
  std::string warning_;
  RunHeader header_;
  RunEnd end_;
  std::map<WorkerId, std::string> hosts_;  // of the workers that have joined
  std::vector<EvaluationRecord> evaluations_;
  std::vector<EventRecord> events_;
  uint32_t shards_ = 0;
  uint32_t workers_ = 0;

  HeatLayout layout_;
  RunSums settled_{HeatLayout{}};  // steps before settled_to_
  Step settled_to_ = 0;
  double settled_foretold_s_ = kUnknown;       // by the decision that held then: the last arrival
  double settled_longest_s_ = 0.0;             // of the run-times that were known by then
  std::vector<StepWithArrivals> tail_;         // the steps after them
  std::vector<DecisionRecord> old_decisions_;  // of steps before settled_to_: the last ones
  std::vector<DecisionRecord> new_decisions_;
  std::vector<ShardLoad> loads_;  // of the steps that were read last,
  Duration loads_of_{};           // which took so long
};

// Nothing: the run has no such step (yet).
Result<std::optional<StepDetail>> read_step(const RunReader& reader, Step step);

}  // namespace drover

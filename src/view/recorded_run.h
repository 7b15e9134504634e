// RecordedRun: a run as far as its file was read, while the file grows: its small tables, and the
// RunAggregate of its steps.
//
// Reading again costs in proportion to what is new. The last steps are read again each time, since
// the true times of stragglers are written into steps that have closed; a straggler that comes more
// than a few dozen steps later stays a lower bound here. If steps that were read are taken out of
// the file again, because the run restarted from an earlier one, everything is read anew. Knows no
// clock.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/run_reader.h"
#include "view/run_aggregate.h"
#include "view/worker_states.h"

namespace drover {

inline constexpr size_t kDecisionsKept = 30;
inline constexpr size_t kEventsKept = 100;

// What is not recorded step by step.
struct RunTables {
  std::string path;
  std::string warning;  // see RunReader
  RunHeader header;
  RunEnd end;
  std::vector<EvaluationRecord> evaluations;
  std::deque<EventRecord> events;  // the last kEventsKept
  WorkerStates worker_states;
  uint32_t shards = 0;
  // Places for workers: as many as the settings say, or more if others joined or arrived.
  uint32_t workers = 0;
  uint32_t workers_joined = 0;     // of them; a file without peers does not say
  std::vector<std::string> nodes;  // host by worker; empty: it has not joined

  // A setting's value, or empty.
  std::string setting(std::string_view key) const;
  // How many steps the run is to take. Nothing: it is not known before its workers say so, or the
  // settings do not say.
  std::optional<uint64_t> steps_planned() const;
};

class RecordedRun {
 public:
  // Reads no step from `end` on.
  explicit RecordedRun(Step end = kAllSteps) : end_(end) {}

  // Reads on, at most about so many arrivals; a later call may be given another reader of the same
  // file. True: there is more to read. After an Error the next call begins where this one did.
  Result<bool> read(const RunReader& reader, uint64_t arrivals_max = 200'000);
  // ... until there is no more.
  Status read_all(const RunReader& reader, uint64_t arrivals_max = 50'000);

  const RunTables& tables() const { return tables_; }
  bool ended() const { return tables_.end.outcome != RunOutcome::kRunning; }

  // Of all steps that were read.
  RunAggregate aggregate() const;
  // Without the last ones, of which a late arrival may still tell more: its totals never shrink,
  // unless the run restarts.
  const RunAggregate& settled() const { return settled_; }

  // The last decisions, in order, those of open steps among them; at least kDecisionsKept if there
  // are as many.
  std::vector<DecisionRecord> decisions() const;
  const DecisionRecord* newest_decision() const;  // null: there is none
  // By shard: how much of the time of the steps that were read last it was busy.
  std::vector<double> shard_busy_shares() const;
  // Which workers are in which row of the aggregate's heat map.
  const HeatLayout& layout() const { return layout_; }

 private:
  Status read_tables(const RunReader& reader);
  Status read_events(const RunReader& reader);
  void take_peers(const std::vector<PeerRecord>& peers);
  Result<bool> read_steps(const RunReader& reader, uint64_t arrivals_max);
  Result<bool> was_rewound(const RunReader& reader) const;
  // Everything is read anew if workers turn out to be others than was thought.
  void arrange(uint32_t workers);
  void forget_steps();
  void settle(RunStretch stretch, uint64_t tail_steps);

  Step end_;
  RunTables tables_;
  size_t events_read_ = 0;
  HeatLayout layout_;
  RunAggregate settled_;  // steps before settled_to_
  Step settled_to_ = 0;
  Duration settled_last_at_{};                 // when the last of them opened
  RunStretch tail_;                            // the steps after them
  std::vector<DecisionRecord> old_decisions_;  // of steps before settled_to_: the last ones
  std::vector<ShardLoad> loads_;               // of the steps that were read last, which took
  Duration loads_of_{};                        // so long
};

}  // namespace drover

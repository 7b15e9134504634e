// RecordedRun: the content of a run file as far as it has been read, while the file grows: its
// small tables, and the RunAggregate of its steps.
//
// The cost of a read is proportional to the new data. The last steps are read again each time,
// because the run-times of stragglers are added to steps that have closed. A straggler that arrives
// more than a few dozen steps later remains a lower bound here. If the run restarts from an earlier
// step, the file is read again from its beginning. Reads no clock.
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

// The tables without a row per step.
struct RunTables {
  std::string path;
  std::string warning;  // see RunReader
  RunHeader header;
  RunEnd end;
  std::vector<EvaluationRecord> evaluations;
  std::deque<EventRecord> events;  // the last kEventsKept
  WorkerStates worker_states;
  uint32_t shards = 0;
  // Number of worker ids: as in the settings, or more if more workers joined or arrived.
  uint32_t workers = 0;
  uint32_t workers_joined = 0;     // 0 in a file without peers
  std::vector<std::string> nodes;  // host by worker; empty: it has not joined

  // A setting's value, or empty.
  std::string setting(std::string_view key) const;
  // The planned number of steps. Absent if the workers' scripts determine it, or if the settings do
  // not have it.
  std::optional<uint64_t> steps_planned() const;
};

class RecordedRun {
 public:
  // Reads only steps before `end`.
  explicit RecordedRun(Step end = kAllSteps) : end_(end) {}

  // Reads new data, at most about `arrivals_max` arrivals. Calls may use different readers of the
  // same file. Returns whether there is more to read. After an error the next call reads the same
  // data again.
  Result<bool> read(const RunReader& reader, uint64_t arrivals_max = 200'000);
  // Reads until the end of the file.
  Status read_all(const RunReader& reader, uint64_t arrivals_max = 50'000);

  const RunTables& tables() const { return tables_; }
  bool ended() const { return tables_.end.outcome != RunOutcome::kRunning; }

  // The totals of all steps that were read.
  RunAggregate aggregate() const;
  // The totals without the last steps, which late arrivals may still change. They never decrease
  // unless the run restarts.
  const RunAggregate& settled() const { return settled_; }

  // The last decisions in order, including those of open steps; at least kDecisionsKept if there
  // are as many.
  std::vector<DecisionRecord> decisions() const;
  const DecisionRecord* newest_decision() const;  // null: there is none
  // By shard: the share of time in which it was busy, over the steps read last.
  std::vector<double> shard_busy_shares() const;
  // The rows of the aggregate's heat map.
  const HeatLayout& layout() const { return layout_; }

 private:
  Status read_tables(const RunReader& reader);
  Status read_events(const RunReader& reader);
  void take_peers(const std::vector<PeerRecord>& peers);
  Result<bool> read_steps(const RunReader& reader, uint64_t arrivals_max);
  Result<bool> was_rewound(const RunReader& reader) const;
  // Sets the number of workers. If it or a worker's node changes, all steps are read again.
  void arrange(uint32_t workers);
  void reset_steps();
  void settle(RunStretch stretch, uint64_t tail_steps);

  Step end_;
  RunTables tables_;
  size_t events_read_ = 0;
  HeatLayout layout_;
  RunAggregate settled_;  // steps before settled_to_
  Step settled_to_ = 0;
  Duration settled_last_at_{};                 // when the last of them opened
  RunStretch tail_;                            // the steps after them
  std::vector<DecisionRecord> old_decisions_;  // the last decisions before settled_to_
  std::vector<ShardLoad> loads_;               // in the steps read last
  Duration loads_of_{};                        // total duration of these steps
};

}  // namespace drover

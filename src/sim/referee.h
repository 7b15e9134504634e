// Referee: checks, while a simulated run goes, what must hold in every run (ARCHITECTURE.md,
// Invariants). It keeps books of its own from the messages it sees, and foretells every update.
//
// Needs PullTask, plain SGD and a constant learning rate: then a block's parameters are one number.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/run_record.h"
#include "sim/witness.h"

namespace drover {

struct RefereeSettings {
  double learning_rate = 0.1;
  bool free_running = false;  // async, ssp: updates are not foretold, only counted
  Duration step_limit{};      // no step may take longer
  size_t pending_limit = 0;   // no more may be waiting, anywhere
};

class Referee : public Witness, public RunObserver {
 public:
  explicit Referee(const RefereeSettings& settings) : settings_(settings) {}

  // The first thing that was wrong; empty if nothing was.
  const std::string& verdict() const { return verdict_; }
  // To be called when the run has ended: what can only be seen then.
  void on_run_over(Step steps, const RunEnd& end);
  size_t most_pending() const { return most_pending_; }

  void on_worker(WorkerId worker) override;
  void on_sent(Endpoint from, const Outgoing& message, TimePoint now) override;
  void on_breach(const std::string& what, TimePoint now) override;
  void on_load(size_t pending, TimePoint now) override;

  Status on_peer(const PeerRecord&) override { return done(); }
  Status on_decision(const DecisionRecord& decision) override;
  Status on_step(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals) override;
  Status on_late_arrival(const ArrivalRecord& arrival) override;
  Status on_evaluation(const EvaluationRecord&) override { return done(); }
  Status on_event(const EventRecord&) override { return done(); }
  Status on_end(const RunEnd&) override { return done(); }

 private:
  // What one block got in one step.
  struct Account {
    std::set<WorkerId> counted;
    std::set<WorkerId> refused;
    uint64_t samples = 0;
    double weighted = 0.0;  // sum of samples x gradient
  };
  struct BlockBook {
    ShardId shard = 0;
    std::map<Step, Account> accounts;
    Version version = 0;  // of `value`
    double value = 0.0;
    Version seen = 0;  // the newest version sent to anybody
  };
  struct Push {
    double gradient = 0.0;
    uint32_t samples = 0;
  };

  void wrong(const std::string& what, TimePoint now);
  void on_plan(const Plan& plan);
  void on_push(WorkerId worker, const FrameHeader& header, float gradient);
  void on_answer(const FrameHeader& header, TimePoint now);
  void on_parameters(const FrameHeader& header, std::span<const float> values, TimePoint now);
  void on_closed(ShardId shard, const StepClosed& closed, TimePoint now);
  void advance(BlockId id, BlockBook& book, Version version, TimePoint now);

  const RefereeSettings settings_;
  std::string verdict_;
  std::map<BlockId, BlockBook> books_;
  std::map<std::tuple<BlockId, Step, WorkerId>, Push> pushes_;
  std::map<ShardId, Step> closed_;  // steps, by shard
  std::map<Step, std::set<WorkerId>> censored_;
  Step told_ = 0;     // steps
  Step decided_ = 0;  // one beyond the last
  size_t most_pending_ = 0;
};

}  // namespace drover

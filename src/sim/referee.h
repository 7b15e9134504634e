// Referee: checks the invariants of every run (docs/reliability.md has the list) while a simulated
// run executes. It keeps its own books from the messages that it sees, and predicts every update.
// REQUIRES: the task is PullTask, and the optimizer SGD, with or without momentum. Then all
// parameters of a block are equal.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/run_record.h"
#include "core/step_times.h"
#include "sim/checkpoint_checker.h"
#include "sim/expected_members.h"
#include "sim/guard_checker.h"
#include "sim/late_report_checker.h"
#include "sim/load_limits.h"
#include "sim/record_checker.h"
#include "sim/share_checker.h"
#include "sim/staleness_checker.h"
#include "sim/straggler_checker.h"
#include "sim/witness.h"

namespace drover {

struct RefereeSettings {
  Step steps = 0;
  double learning_rate = 0.1;
  std::function<double(Step)> rate_at = {};  // instead, where workers announce it
  double momentum = 0.0;
  bool asynchronous = false;          // async, ssp
  std::optional<uint64_t> staleness;  // ssp
  StragglerChecker::Settings stragglers = {};
  // A gradient is the parameters minus this.
  std::function<double(Step, WorkerId)> target;
  // The same for `count` samples from position `first` of all samples of the run.
  std::function<double(uint64_t, uint32_t)> target_of = {};
  // Byzantine faults: gradients are multiplied by this; absent: 1.
  std::function<double(Step, WorkerId)> gradient_factor = {};
  GuardChecker::Settings guard = {};
  ShareChecker::Settings shares = {};
  CheckpointChecker::Settings checkpoints = {};
  bool recovers = false;     // lost processes are restarted
  bool servers_die = false;  // or break the protocol; without recovery the run then fails
  bool scripts = false;      // workers bring their model, and leave at the end
  bool may_leave = false;    // scripts may leave before the last step
  // Partial pull: workers continue when this many blocks are fresh; 0: any number. Absent: when all
  // blocks have one version.
  std::optional<uint32_t> blocks_needed;
  Duration push_grace{};
  bool exact_times = false;  // all messages between servers take equally long
  LoadLimits::Settings limits = {};
};

class Referee : public Witness, public RunObserver {
 public:
  explicit Referee(const RefereeSettings& settings)
      : settings_(settings),
        stragglers_(settings.stragglers),
        shares_(settings.shares),
        guard_(settings.guard),
        checkpoints_(settings.checkpoints),
        load_(settings.limits) {}

  // The first violation; empty if there was none.
  const std::string& verdict() const { return verdict_; }
  // To be called when the run has ended. Checks what is only known then.
  void on_run_over(const RunEnd& end);
  const Load& most() const { return load_.most(); }

  // The policy learns this.
  void on_learned(const StepTimes& times);
  void on_learned_late(Step step, WorkerId worker);

  void on_sent(Party from, const Outgoing& message, TimePoint now) override;
  void on_received(Party from, const Outgoing& message, TimePoint now) override;
  void on_lost(Party at, WorkerId worker, TimePoint now) override;
  void on_server_lost(ShardId shard) override;
  void on_restart(const Restart& restart, TimePoint now) override;
  void on_checkpoint(const CheckpointReady& checkpoint,
                     const std::map<ShardId, CheckpointPart>& parts, TimePoint now) override;
  void on_breach(const std::string& what, TimePoint now) override;
  void on_load(const Load& load, TimePoint now) override;

  Status on_peer(const PeerRecord&) override { return done(); }
  Status on_decision(const DecisionRecord& decision) override;
  Status on_step(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals) override;
  Status on_late_arrival(const ArrivalRecord& arrival) override;
  Status on_abandoned(const AbandonRecord& abandoned) override;
  Status on_evaluation(const EvaluationRecord&) override { return done(); }
  Status on_event(const EventRecord&) override { return done(); }
  Status on_end(const RunEnd&) override { return done(); }

 private:
  // What one block received in one step.
  struct Account {
    std::set<WorkerId> counted;
    std::map<WorkerId, TimePoint> counted_at;
    std::set<WorkerId> refused;
    uint64_t samples = 0;
    Range weighted;  // sum of samples × gradient
    bool has(WorkerId worker) const { return counted.contains(worker) || refused.contains(worker); }
  };
  struct BlockState {
    Range value;
    Range momentum;
  };
  struct BlockBook {
    ShardId shard = 0;
    uint64_t offset = 0;
    double rate = 1.0;      // factor of the run's learning rate
    bool averaged = false;  // averaged instead of trained
    std::map<Step, Account> accounts;
    Version version = 0;  // of `state`
    BlockState state;
    std::map<Version, BlockState> states;  // by version
    Version seen = 0;                      // the newest version sent to any worker
  };
  struct Push {
    double gradient = 0.0;
    uint32_t samples = 0;
  };

  using PushKey = std::tuple<BlockId, Step, WorkerId>;

  // Records a violation; does nothing if `what` is empty.
  void wrong(const std::string& what, TimePoint now);
  // --- messages
  void on_plan(const Plan& plan);
  void on_welcome(ShardId shard, WorkerId worker);
  void on_farewell(Party from, const Address& to, const Farewell& farewell, TimePoint now);
  void on_push(WorkerId worker, const FrameHeader& header, std::span<const float> gradient,
               TimePoint now);
  std::vector<double> targets_of(WorkerId worker, const FrameHeader& header) const;
  void on_outlier(const BlockBook& book, const FrameHeader& header, TimePoint now);
  double rate_at(Step step) const {
    return settings_.rate_at ? settings_.rate_at(step) : settings_.learning_rate;
  }
  void update(BlockBook& book, const Range& gradient, double rate) const;
  void check_mixture(WorkerId worker, const FrameHeader& header, double gradient, TimePoint now);
  std::optional<TimePoint> enough_at(BlockId id, const Account& account, const Decision& decision);
  void on_answer(const FrameHeader& header, TimePoint now);
  void on_accepted(BlockBook& book, const FrameHeader& header, TimePoint now);
  void on_parameters(const FrameHeader& header, const Address& to, std::span<const float> values,
                     TimePoint now);
  void on_closed(ShardId shard, const StepClosed& closed, TimePoint now);
  bool may_be_empty(const BlockBook& book, Step step);
  void advance(BlockId id, BlockBook& book, Version version, TimePoint now);
  // --- restarts and checkpoints
  void take_back(Version version);
  void check_part(const CheckpointPart& part, TimePoint now);
  // --- how long steps wait
  void check_needed(const BlockBook& book, const FrameHeader& header, TimePoint now);
  void check_enough(BlockId id, const BlockBook& book, const StepClosed& closed, TimePoint now);
  void check_named(const Decision& decision, TimePoint now);
  // --- the record
  bool arrived(Step step, WorkerId worker) const;
  bool refused(Step step, WorkerId worker) const;
  void check_arrival(const StepRecord& step, const ArrivalRecord& arrival, TimePoint now);

  const RefereeSettings settings_;
  std::string verdict_;
  ExpectedMembers members_;
  std::map<BlockId, BlockBook> books_;
  std::map<ShardId, size_t> blocks_on_;
  std::map<PushKey, Push> pushes_;
  std::set<PushKey> unanswered_;
  std::set<ShardId> lost_servers_;  // since the last restart
  LateReportChecker lates_;
  StalenessChecker staleness_;
  StragglerChecker stragglers_;
  ShareChecker shares_;
  GuardChecker guard_;
  CheckpointChecker checkpoints_;
  std::map<WorkerId, TimePoint> leaving_;  // scripts notified of the run's completion
  LoadLimits load_;
  RecordChecker record_;
  Step named_ = 0;                     // steps whose decision was sent to shards
  bool saw_corrupt_gradient_ = false;  // a gradient with NaN was refused
  // Blocks of an old version that a gradient was computed on.
  std::map<std::pair<Step, WorkerId>, std::set<BlockId>> stale_;
};

}  // namespace drover

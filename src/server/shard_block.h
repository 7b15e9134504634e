// ShardBlock: one block's life on its shard. Collects the gradients of the open step, closes,
// publishes the next version.
//
// Version v of the parameters is what step v starts from, so the block's version is also the number
// of the step it is collecting for.
//
// Where workers run freely nothing is collected: every gradient is applied when it comes, and the
// version counts rounds of as many gradients as there are workers. A push's step is then its
// worker's own number for the gradient.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/checkpoint_part.h"
#include "core/float_buffer.h"
#include "core/layout.h"
#include "server/gradient_noise.h"
#include "server/gradient_sum.h"
#include "server/membership.h"
#include "server/norm_guard.h"
#include "server/optimizer.h"
#include "wire/control.h"
#include "wire/header.h"

namespace drover {

class ShardBlock {
 public:
  // Both pools must outlive this. Parameters are published in buffers of `published`.
  ShardBlock(const Block& block, const Plan& plan, BufferPool* pool, BufferPool* published);

  const Block& block() const { return block_; }
  bool started() const { return parameters_ != nullptr; }
  Version version() const { return version_; }
  // The newest version; never changes once published.
  const ConstBuffer& parameters() const { return parameters_; }

  // Version 0. REQUIRES: not started.
  void start(std::span<const float> initial, const Membership& members);

  // The same in a run that goes on from `version`.
  void restore(const SavedBlock& saved, Version version, const Membership& members);

  // What would be answered if `worker` pushed for `step` now; lets a shard refuse before the bytes
  // move.
  Answer judge(Step step, WorkerId worker) const;

  // Takes a push in if judge() accepts it, its values are finite, and it is not refused for being
  // out of line. Late also if it lies in memory of its worker, which has overwritten it meanwhile.
  // REQUIRES: buffer has block().length floats.
  Answer push(Step step, WorkerId worker, uint32_t samples, ConstBuffer gradient,
              const Membership& members);

  // How many times as long as usual the last push was, if it was out of line, be it used or not.
  const std::optional<double>& out_of_line() const { return out_of_line_; }

  // The bytes of a push that judge() accepts are on their way.
  void expect(WorkerId worker);
  // They will not come: the worker has left.
  void stop_expecting(WorkerId worker);

  // They will not come: the worker has something else in their place.
  void withdraw(WorkerId worker, const Membership& members);

  // A worker will push nothing more for the open step: unless its bytes are on their way, it is
  // not waited for.
  void excuse(WorkerId worker, const Membership& members);

  // Somebody left: nothing they have not pushed is waited for.
  void on_members_changed(const Membership& members);

  // Whether the open step has what it waits for: `cutoff` contributions of workers alive, or
  // nobody alive who still owes one.
  bool complete(uint32_t cutoff) const;
  // Whether nobody alive still owes one.
  bool everybody_done() const { return started() && !finished() && missing_ == 0; }
  // Contributions of workers alive to the open step.
  uint32_t contributed() const { return contributed_; }

  // Applies the optimiser to what has arrived and opens the next step. Returns what the gradients
  // say about noise; of a block that is averaged, not trained, nothing: zeros.
  NoiseEstimate close(double learning_rate, const Membership& members);

  // --- where workers run freely (the plan says so), instead of push, expect, excuse, complete and
  // close

  // Applies a push at once if judge() accepts it and its values are finite. REQUIRES: as push().
  Answer apply(Step step, WorkerId worker, uint32_t samples, ConstBuffer gradient,
               double learning_rate);
  // A push for `step` has come and is not used: it is not waited for any more.
  void pass_over(Step step, WorkerId worker);
  // Whether all of the worker's pushes for steps before `step` have come.
  bool has_all_before(Step step, WorkerId worker) const { return next_push_[worker] >= step; }
  // A new life of the worker begins to count again.
  void forget_pushes(WorkerId worker) { next_push_[worker] = 0; }
  // It is lost: what comes under its name is another's. (Not when it comes: everybody does after a
  // restore, which brings back what was seen.)
  void forget_norms(WorkerId worker) {
    if (guard_) guard_->forget(worker);
  }

  struct Round {
    uint32_t answered = 0;   // pushes that were applied or refused
    uint32_t gradients = 0;  // applied
    uint64_t samples = 0;    // behind those
  };
  const Round& round() const { return round_; }
  // The next version begins.
  void end_round(const Membership& members);

  // What to evaluate of version `version`, if it is kept (the last two that are due are); null if
  // not.
  ConstBuffer snapshot(Version version) const;
  // The newest version of which a snapshot is kept; 0 if there is none.
  Version newest_snapshot() const;

  // The block as it was when it came to `version`, where the plan wants checkpoints, and forgets
  // it; nothing if it was not there yet.
  std::optional<SavedBlock> take_saved(Version version);

  const GradientSum& sum() const { return sum_; }
  bool finished() const { return version_ >= steps_; }

 private:
  bool is_missing(WorkerId worker) const {
    return pushes_[worker] == Push::kOwed || pushes_[worker] == Push::kExpected;
  }
  Answer add(WorkerId worker, uint32_t samples, ConstBuffer gradient);
  NoiseEstimate publish(double learning_rate);
  void next_version();
  void keep_snapshot();
  bool snapshot_due() const;
  SavedBlock saved() const;

  const Block block_;
  const Step steps_;
  const Step evaluate_every_;
  const Step checkpoint_every_;
  const bool standby_;
  const bool free_running_;
  const GuardRule rule_;
  BufferPool* pool_;
  BufferPool* published_;
  Version version_ = 0;
  ConstBuffer parameters_;
  GradientSum sum_;
  double weighted_squares_ = 0.0;  // of the gradients in it: samples times squared length, summed
  std::optional<NormGuard> guard_;
  std::optional<double> out_of_line_;
  const double rate_;  // of the run's learning rate
  BlockOptimizer optimizer_;
  enum class Push : uint8_t { kOwed, kExpected, kAnswered, kExcused };
  std::vector<Push> pushes_;     // by worker, in the open step
  uint32_t missing_ = 0;         // alive, and owed or expected
  uint32_t contributed_ = 0;     // alive and in the sum
  std::vector<Step> next_push_;  // free-running, by worker: the least step that has not come
  Round round_;

  struct Snapshot {
    Version version = 0;
    ConstBuffer values;
  };
  // Two, so that an evaluator that has begun to fetch one from the first shard still finds it on
  // the last.
  std::array<Snapshot, 2> snapshots_;
  // Until the shard's last block has come so far, too.
  std::map<Version, SavedBlock> saved_;
};

}  // namespace drover

// ShardBlock: one block of the parameters on its shard. It turns gradients into versions.
//
// Step v starts from version v of the parameters, so the block's version is also the number of the
// step that it collects gradients for. The protocol (shard/shard_protocol.h) decides which
// gradients are used and when a version is made.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/checkpoint_part.h"
#include "core/float_buffer.h"
#include "core/gradient_noise.h"
#include "core/layout.h"
#include "core/membership.h"
#include "shard/block_copies.h"
#include "shard/gradient_intake.h"
#include "shard/optimizer.h"
#include "wire/control.h"

namespace drover {

class ShardBlock {
 public:
  // Both pools must outlive this. Parameters are published in buffers of `published`.
  ShardBlock(const Block& block, const Plan& plan, BufferPool* pool, BufferPool* published);

  const Block& block() const { return block_; }
  bool started() const { return parameters_ != nullptr; }
  bool finished() const { return version_ >= steps_; }
  // The run ends with that version.
  void end_at(Step steps) {
    steps_ = steps;
    copies_.end_at(steps);
  }
  // Whether gradients can be used.
  bool collects() const { return started() && !finished(); }
  Version version() const { return version_; }
  // The newest parameters. Published parameters never change.
  const ConstBuffer& parameters() const { return parameters_; }

  // Sets version 0. REQUIRES: !started().
  void start(std::span<const float> initial);

  // Instead of start(), in a run that continues at `version`.
  void restore(const SavedBlock& saved, Version version, const Membership& members);

  // Adds a gradient to the next update; see GradientIntake::add().
  // REQUIRES: collects(); the buffer has block().length floats.
  Answer add(WorkerId worker, uint32_t samples, ConstBuffer gradient) {
    return values_of_ ? Answer::kAccepted : intake_.add(worker, samples, std::move(gradient));
  }
  const GradientSum& sum() const { return intake_.sum(); }
  // See GradientIntake::outlier_ratio().
  const std::optional<double>& outlier_ratio() const { return intake_.outlier_ratio(); }
  // The worker is lost: its norms do not count for its next incarnation.
  void forget_norms(WorkerId worker) { intake_.forget(worker); }

  // Takes in values that replace the block's in the next version, in place of all gradients. Of
  // several workers' those of the lowest are used. REQUIRES: as add().
  Answer add_values(WorkerId worker, ConstBuffer values);
  // Forgets what was taken in.
  void forget_gradients();

  // Of the mean of what was taken in, the sum of squares and the largest absolute value.
  struct Norm {
    double squares = 0.0;
    double largest = 0.0;
  };
  Norm norm() const;

  // Which settings of LearningRate are the block's own; 0: none.
  uint32_t group() const { return group_; }

  // Applies the optimizer to the gradients, and publishes the result. `own`: the settings of the
  // block's group in this step, if it has any. `scale` multiplies the mean gradient. Returns the
  // noise of the gradients; zeros for a block that is averaged, not trained. REQUIRES: collects().
  NoiseEstimate publish(double learning_rate, const OptimizerSettings* own = nullptr,
                        double scale = 1.0);
  // Saves the newest version, which is not due; take_saved() returns it.
  void save_now() { copies_.keep_saved(version_, saved()); }
  // Begins the next version, and keeps copies of it if they are due.
  void next_version(const Membership& members);

  // The values to evaluate of that version. Null if no snapshot is kept; the last two are.
  ConstBuffer snapshot(Version version) const { return copies_.snapshot(version); }
  // The version of the newest snapshot; 0 if there is none.
  Version newest_snapshot() const { return copies_.newest_snapshot(); }
  // Removes and returns the copy that was saved when the block reached `version`. Nothing if the
  // block has not reached it.
  std::optional<SavedBlock> take_saved(Version version) { return copies_.take_saved(version); }

 private:
  void keep_snapshot();
  SavedBlock saved() const;

  const Block block_;
  Step steps_;
  BufferPool* pool_;
  BufferPool* published_;
  Version version_ = 0;
  ConstBuffer parameters_;
  GradientIntake intake_;
  std::optional<WorkerId> values_of_;  // what was taken in are values, and of this worker
  const uint32_t group_;
  const double rate_;  // a factor on the run's learning rate
  BlockOptimizer optimizer_;
  BlockCopies copies_;
};

}  // namespace drover

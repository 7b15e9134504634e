// ShardBlock: one block of the parameters on its shard: gradients go in, versions come out.
//
// Version v of the parameters is what step v starts from, so the block's version is also the number
// of the step it is collecting for. Which gradients go in, and when a version is made, is a
// protocol's to say (shard/shard_protocol.h).
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
  // Gradients can be used.
  bool collects() const { return started() && !finished(); }
  Version version() const { return version_; }
  // The newest; they never change once published.
  const ConstBuffer& parameters() const { return parameters_; }

  // Version 0. REQUIRES: not started.
  void start(std::span<const float> initial);

  // The same in a run that continues at `version`.
  void restore(const SavedBlock& saved, Version version, const Membership& members);

  // Takes a gradient in for the next update; see GradientIntake::add().
  // REQUIRES: collects(); the buffer has block().length floats.
  Answer add(WorkerId worker, uint32_t samples, ConstBuffer gradient) {
    return intake_.add(worker, samples, std::move(gradient));
  }
  const GradientSum& sum() const { return intake_.sum(); }
  // How many times as large as usual the last gradient was, if it was out of line, used or not.
  const std::optional<double>& outlier_ratio() const { return intake_.outlier_ratio(); }
  // The worker is lost: its norms are not those of what comes under its name later.
  void forget_norms(WorkerId worker) { intake_.forget(worker); }

  // Applies the optimiser to what was taken in, and publishes the result. Returns what the
  // gradients say about noise; of a block that is averaged, not trained, nothing: zeros.
  // REQUIRES: collects().
  NoiseEstimate publish(double learning_rate);
  // The next version begins: copies of it are kept if they are due.
  void next_version(const Membership& members);

  // What to evaluate of version `version`, if it is kept (the last two that are due are); null if
  // not.
  ConstBuffer snapshot(Version version) const { return copies_.snapshot(version); }
  // The newest version of which a snapshot is kept; 0 if there is none.
  Version newest_snapshot() const { return copies_.newest_snapshot(); }
  // The block as it was when it came to `version`, where the plan wants it saved, and forgets it;
  // nothing if it was not there yet.
  std::optional<SavedBlock> take_saved(Version version) { return copies_.take_saved(version); }

 private:
  void keep_snapshot();
  SavedBlock saved() const;

  const Block block_;
  const Step steps_;
  BufferPool* pool_;
  BufferPool* published_;
  Version version_ = 0;
  ConstBuffer parameters_;
  GradientIntake intake_;
  const double rate_;  // of the run's learning rate
  BlockOptimizer optimizer_;
  BlockCopies copies_;
};

}  // namespace drover

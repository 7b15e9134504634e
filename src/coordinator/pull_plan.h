// PullPlan: the share of the blocks that workers wait for before they begin a step: all blocks, a
// fixed share, or a share that PullChoice adapts during the run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "coordinator/coordinator_settings.h"
#include "core/block_share.h"
#include "core/event.h"
#include "core/ids.h"
#include "policy/pull_choice.h"
#include "wire/control.h"

namespace drover {

class PullPlan {
 public:
  // `blocks_on`: the number of blocks of each shard that has blocks.
  PullPlan(const PullSettings& settings, const std::map<ShardId, uint32_t>& blocks_on)
      : partial_(settings.is_partial()), share_(settings.choose ? 1.0 : settings.share) {
    if (settings.choose) choice_.emplace(blocks_on, settings.warmup);
  }

  // Whether workers may begin a step without some blocks.
  bool is_partial() const { return partial_; }
  double share() const { return share_; }
  // How many of `all` blocks must have closed a step before workers begin the next step.
  uint32_t needed(uint32_t all) const { return blocks_needed(share_, all); }

  void learn(const StepReport& report) {
    if (choice_) choice_->learn(report.compute, report.responses);
  }
  // A step opens that waits for `cutoff` of `alive` workers. Returns the share of later steps if it
  // changes.
  std::optional<event::PullShare> decide(Step step, uint32_t cutoff, uint32_t alive) {
    if (!choice_) return std::nullopt;
    const auto chosen = choice_->decide(step, cutoff, alive);
    if (chosen) share_ = chosen->share;
    return chosen;
  }

 private:
  const bool partial_;
  double share_;
  std::optional<PullChoice> choice_;
};

}  // namespace drover

// CutoffRule: when a block closes a step, according to the coordinator's decisions.
//
// A block closes when one of these holds:
//   - the cutoff is reached, and the grace after that is over;
//   - no member's push is missing;
//   - the time limit of the open step is over, and the minimum number of gradients has arrived.
// The rule stores only the decisions. Its answers are functions of the decisions, the block and the
// time.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "core/ids.h"
#include "core/membership.h"
#include "core/time.h"
#include "shard/step_pushes.h"
#include "wire/control.h"

namespace drover {

class CutoffRule {
 public:
  // A block and the step that it collects gradients for.
  struct Collecting {
    Step step = 0;
    const StepPushes& pushes;
    const Membership& members;
    std::optional<TimePoint> opened;  // when the step opened, if it is the shard's open step
  };

  // `grace`: how long a block waits after it has reached the cutoff.
  // `several_open`: there may be decisions about steps ahead of the open one.
  // `undecided_max`: how many steps a block may be ahead of the newest decision.
  CutoffRule(Duration grace, bool several_open, Step undecided_max)
      : grace_(grace), several_open_(several_open), undecided_max_(undecided_max) {}

  // Returns whether the decision is about another step than the last decision. `open`: the shard's
  // open step.
  bool on_decision(const Decision& decision, Step open);
  // Steps before `open` have closed.
  void forget_before(Step open);

  // The last decision received.
  const std::optional<Decision>& last() const { return last_; }

  // Whether the block closes at `now`. A push exactly at a limit is in time.
  bool may_close(const Collecting& block, TimePoint now) const;
  // The time at which the block closes at the latest, if it already has enough gradients. Includes
  // the grace. Absent: it has not enough.
  std::optional<TimePoint> enough_since(const Collecting& block) const;
  bool has_grace() const { return grace_ > Duration::zero(); }
  // Whether blocks may close without a further push: there is a grace, or step `open` has a time
  // limit.
  bool has_timer(Step open) const;
  // When the block closes if no further push arrives; absent: it waits for a push.
  std::optional<TimePoint> wake_at(const Collecting& block) const;

  // The number of entries kept for later.
  size_t pending() const { return decisions_.size(); }

 private:
  const Decision* decision_for(Step step) const;
  static std::optional<TimePoint> deadline(const Collecting& block, const Decision& decision);
  static bool enough_at_deadline(const Collecting& block, const Decision& decision);

  Duration grace_;
  bool several_open_;
  Step undecided_max_;
  std::optional<Decision> last_;
  std::map<Step, Decision> decisions_;  // if several_open_: by step, from the open one on
};

}  // namespace drover

// CutoffRule: whether a block has the gradients that the coordinator's decisions ask for.
//
// A block closes when the cutoff is reached and the grace after it is over, when no member owes a
// push any more, or when the time limit of the open step is over and the least number is here. It
// keeps the decisions; everything else is a function of them, of the block, and of the time.
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
  // What a block collects for.
  struct Collecting {
    Step step = 0;
    const StepPushes& pushes;
    const Membership& members;
    std::optional<TimePoint> opened;  // if it is the shard's open step: since when
  };

  // `grace`: a block closes so much later than it has reached the cutoff.
  // `several_open`: decisions are made about steps that are ahead of the open one.
  // `undecided_max`: a block closes steps at most so far ahead of the newest decision.
  CutoffRule(Duration grace, bool several_open, Step undecided_max)
      : grace_(grace), several_open_(several_open), undecided_max_(undecided_max) {}

  // Returns whether it is about another step than the last one. `open`: the shard's open step.
  bool on_decision(const Decision& decision, Step open);
  // Steps before `open` have closed.
  void forget_before(Step open);

  // The decision that came last.
  const std::optional<Decision>& last() const { return last_; }

  // Whether the block closes with what came at `now`. A push at the very moment of a limit is in
  // time.
  bool may_close(const Collecting& block, TimePoint now) const;
  // Since when the block has what it waits for, including the grace; absent: it has not yet. At
  // that moment, at the latest, it closes.
  std::optional<TimePoint> enough_since(const Collecting& block) const;
  bool has_grace() const { return grace_ > Duration::zero(); }
  // Whether blocks may close without a push: there is a grace, or a time limit on step `open`.
  bool has_timer(Step open) const;
  // When the block closes if nothing more comes; absent: it waits for a push.
  std::optional<TimePoint> wake_at(const Collecting& block) const;

  // How much is kept for later, in entries.
  size_t pending() const { return decisions_.size(); }

 private:
  const Decision* about(Step step) const;
  static std::optional<TimePoint> deadline(const Collecting& block, const Decision& decision);
  static bool enough_at_deadline(const Collecting& block, const Decision& decision);

  Duration grace_;
  bool several_open_;
  Step undecided_max_;
  std::optional<Decision> last_;
  std::map<Step, Decision> decisions_;  // with several_open_: of open steps
};

}  // namespace drover

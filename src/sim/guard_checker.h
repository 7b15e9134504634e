// GuardChecker: which gradients the norm guard (shard/norm_guard.h) may refuse or clip, and which
// it must, from the norms that a block received. It does not repeat the guard's arithmetic: it uses
// bounds that hold whatever the medians are.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "core/ids.h"
#include "core/learning_rules.h"

namespace drover {

// The interval that a number is in; both ends are equal where the number is known.
struct Range {
  double low = 0.0;
  double high = 0.0;
};
// Whether the number is in the range, with a tolerance for float arithmetic (a relative error of
// about 1e-7 per update).
bool is_in(double number, const Range& range);

class GuardChecker {
 public:
  struct Settings {
    GuardRule rule = GuardRule::kOff;
    std::set<WorkerId> byzantine_workers;  // their gradients are wrong
    uint32_t workers = 0;
  };
  explicit GuardChecker(Settings settings) : settings_(std::move(settings)) {}

  // A block has checked this gradient, whose values are all `value`, in this step.
  void note(BlockId block, Step step, WorkerId worker, double value);
  // A shard has lost the worker, and forgets its norms.
  void on_lost(WorkerId worker) { lost_.insert(worker); }
  // The run continues from `version`: later steps are discarded.
  void restart(Version version);

  // Both judge by the norms seen before `step`.
  bool may_be_outlier(BlockId block, Step step, double value) const;
  bool must_be_outlier(BlockId block, Step step, double value) const;
  // The range of values that may be added for a gradient that was accepted.
  Range counted(BlockId block, Step step, double value) const;

 private:
  struct Seen {
    Range all;     // norms of all workers
    Range honest;  // norms of the workers that are not byzantine
    uint32_t voters = 0;
    uint32_t steady = 0;  // honest workers that certainly have a vote
  };
  Seen seen_before(BlockId block, Step step) const;

  const Settings settings_;
  // Norms, by block and worker, by step.
  std::map<std::pair<BlockId, WorkerId>, std::map<Step, double>> lengths_;
  std::set<WorkerId> lost_;
};

}  // namespace drover

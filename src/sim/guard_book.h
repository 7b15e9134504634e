// GuardBook: what a guard of norms (shard/norm_guard.h) may and must do with a gradient, from the
// lengths that a block was sent. It does not repeat the guard's arithmetic: it knows bounds that
// hold whatever the medians are.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "core/ids.h"
#include "core/learning_rules.h"

namespace drover {

// From the least to the greatest that a number may be; equal where it is known.
struct Range {
  double low = 0.0;
  double high = 0.0;
};
// Floats against doubles: an error of a part in ten million an update, and updates forget.
bool is_in(double number, const Range& range);

class GuardBook {
 public:
  struct Settings {
    GuardRule rule = GuardRule::kOff;
    std::set<WorkerId> liars;  // whose gradients are not what they should be
    uint32_t workers = 0;
  };
  explicit GuardBook(Settings settings) : settings_(std::move(settings)) {}

  // A block has judged this gradient, whose values are all `value`, in this step.
  void note(BlockId block, Step step, WorkerId worker, double value);
  // It is lost by a shard: what is remembered of it is forgotten.
  void on_lost(WorkerId worker) { lost_.insert(worker); }
  // The run continues from `version`: later steps have not been.
  void restart(Version version);

  // What was seen before `step`.
  bool may_be_outlier(BlockId block, Step step, double value) const;
  bool must_be_outlier(BlockId block, Step step, double value) const;
  // What may be counted of a gradient that was accepted.
  Range counted(BlockId block, Step step, double value) const;

 private:
  struct Seen {
    Range all;     // lengths of all workers
    Range honest;  // of those that do not lie
    uint32_t voters = 0;
    uint32_t steady = 0;  // honest workers that certainly have a vote
  };
  Seen seen_before(BlockId block, Step step) const;

  const Settings settings_;
  // Lengths, by block and worker, by step.
  std::map<std::pair<BlockId, WorkerId>, std::map<Step, double>> lengths_;
  std::set<WorkerId> lost_;
};

}  // namespace drover

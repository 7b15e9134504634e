// PullChoice: how many blocks workers wait for before they begin a step, chosen from how long
// shards took to answer them, as cutoffs are chosen from how long workers took.
//
// A pull shows, for every share b of the blocks, how long a step would have taken with it:
//   t(b) = o + r(b),  r(b): from the first shard's answer to b of the blocks being there,
//                     o: the rest of the step, the worker's computing and the quickest first
//                     answer to anybody of late: who has to wait longer for that waits for others.
// A step is as long as that of the slowest worker that it waits for, the c-th of n to finish, so
// that what counts of t(b) is its c-th order statistic in n pulls. Of b the best is
//   argmax_b E[ b / t_(c:n)(b) ],
// fresh blocks per time, over the pulls of the recent past. Where backup workers hide slow answers
// already (c < n) all blocks are waited for; where one of many answers spoils a step, a few are
// not. b runs over what is left of the blocks without any one shard, any two, and so on.
//
// Nothing has to be probed: an answer that was not waited for is still seen when it comes.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/event.h"
#include "core/ids.h"
#include "core/step_times.h"
#include "core/time.h"

namespace drover {

class PullChoice {
 public:
  // `blocks_on`: how many blocks each shard has that has any. Waits for all in `warmup` steps.
  PullChoice(std::map<ShardId, uint32_t> blocks_on, Step warmup);

  // A worker computed for so long, after a pull that the shards (by number) answered like this.
  // What makes no sense is ignored: workers are not trusted.
  void learn(Duration compute, std::span<const PullResponse> responses);

  // About the steps from now on, each of which waits for `cutoff` of `alive` workers. Nothing if
  // the share stays as it is (it begins with all).
  std::optional<event::PullShare> decide(Step step, uint32_t cutoff, uint32_t alive);

  double share() const;

 private:
  struct ExpectedThroughput {
    double value = 0.0;  // expected blocks per second
    double time = 0.0;   // expected, of a step
  };
  void weigh(uint32_t cutoff, uint32_t alive);
  ExpectedThroughput promise(size_t candidate, double first);

  const std::map<ShardId, uint32_t> blocks_on_;
  const Step warmup_;
  uint32_t blocks_ = 0;
  // Least numbers of blocks that are worth considering, ascending, the last is all; and how many
  // shards each may leave out.
  std::vector<uint32_t> needs_;
  std::vector<uint32_t> left_out_;
  size_t chosen_;  // of those
  struct Pull {
    std::vector<double> times;  // by needs_: computing and r(b)
    double first = 0.0;         // answer
  };
  std::deque<Pull> pulls_;  // the last
  // Scratch: of each rank among pulls, how likely it is that of a step; and one column of pulls_.
  std::vector<double> weights_;
  std::vector<double> column_;
};

}  // namespace drover

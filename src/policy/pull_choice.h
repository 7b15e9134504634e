// PullChoice: chooses how many blocks workers wait for before they begin a step, from the response
// times of the shards.
//
// For each number b of blocks, a pull shows how long a step would have taken with it:
//   t(b) = o + r(b),  r(b): time from the first shard's answer until b blocks have arrived,
//                     o: the rest of the step: the worker's computation, and the fastest recent
//                        first answer. A longer wait for a first answer is caused by other workers.
// The duration of a step is that of the slowest worker it waits for, the c-th of n to finish. So
// t(b) counts by its c-th order statistic in n pulls. The best b is
//   argmax_b E[ b / t_(c:n)(b) ],
// fresh blocks per time, over recent pulls. If backup workers already hide slow answers (c < n),
// workers wait for all blocks. If single slow answers delay most steps, workers skip a few blocks.
// The candidates for b are the numbers of blocks without any one shard, without any two, and so on.
//
// No probes are needed: answers that a worker did not wait for are measured when they arrive.
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
  // `blocks_on`: number of blocks of each shard that has any. The share is 1 for the first `warmup`
  // steps.
  PullChoice(std::map<ShardId, uint32_t> blocks_on, Step warmup);

  // Reports a worker's pull, with the responses by shard, and its computation after the pull.
  // Invalid values are ignored, because workers are not trusted.
  void learn(Duration compute, std::span<const PullResponse> responses);

  // Decides for the following steps, each of which waits for `cutoff` of `alive` workers. Nothing
  // if the share does not change. It starts with 1.
  std::optional<event::PullShare> decide(Step step, uint32_t cutoff, uint32_t alive);

  double share() const;

 private:
  struct ExpectedThroughput {
    double value = 0.0;  // expected blocks per second
    double time = 0.0;   // expected, of a step
  };
  void weigh(uint32_t cutoff, uint32_t alive);
  ExpectedThroughput expected_throughput(size_t candidate, double first);

  const std::map<ShardId, uint32_t> blocks_on_;
  const Step warmup_;
  uint32_t blocks_ = 0;
  // The candidates: numbers of blocks to wait for, ascending, the last is all; and the number of
  // shards that each leaves out.
  std::vector<uint32_t> needs_;
  std::vector<uint32_t> left_out_;
  size_t chosen_;  // index of the current candidate
  struct Pull {
    std::vector<double> times;  // by needs_: computation and r(b)
    double first = 0.0;         // time of the first answer
  };
  std::deque<Pull> pulls_;  // the newest ones
  // Scratch: by rank among the pulls, the probability that it determines a step; a column of
  // pulls_.
  std::vector<double> weights_;
  std::vector<double> column_;
};

}  // namespace drover

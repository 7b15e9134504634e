#include "policy/pull_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/check.h"

namespace drover {
namespace {

// Pulls kept: enough to see delays of one pull in a hundred, few enough to follow changing load.
constexpr size_t kPullsKept = 512;
constexpr size_t kPullsLeast = 16;
constexpr size_t kCandidatesMost = 64;
// The minimum improvement for a change, because each change costs messages.
constexpr double kWorthChanging = 1.01;
// For more workers than this, uses the order statistics of this many, with the same share of
// backups.
constexpr uint32_t kWorkersWeighed = 200;

// P(at least `cutoff` of `count` independent events), each with probability p.
double at_least(uint32_t cutoff, uint32_t count, double p) {
  if (p <= 0.0) return 0.0;
  if (p >= 1.0) return 1.0;
  double sum = 0.0;
  for (uint32_t k = cutoff; k <= count; ++k) {
    sum += std::exp(std::lgamma(count + 1.0) - std::lgamma(k + 1.0) - std::lgamma(count - k + 1.0) +
                    k * std::log(p) + (count - k) * std::log1p(-p));
  }
  return std::min(sum, 1.0);
}

}  // namespace

PullChoice::PullChoice(std::map<ShardId, uint32_t> blocks_on, Step warmup)
    : blocks_on_(std::move(blocks_on)), warmup_(warmup) {
  DROVER_CHECK(!blocks_on_.empty());
  std::vector<uint32_t> largest;
  for (const auto& [shard, blocks] : blocks_on_) {
    largest.push_back(blocks);
    blocks_ += blocks;
  }
  std::sort(largest.begin(), largest.end(), std::greater<>());
  // If the largest shards may be missing, any other shards of the same number may be.
  const size_t stride = 1 + largest.size() / kCandidatesMost;
  uint32_t left = blocks_;
  for (size_t out = 0; out < largest.size(); ++out) {
    if (out % stride == 0) {
      needs_.push_back(left);
      left_out_.push_back(static_cast<uint32_t>(out));
    }
    left -= largest[out];
  }
  std::reverse(needs_.begin(), needs_.end());
  std::reverse(left_out_.begin(), left_out_.end());
  chosen_ = needs_.size() - 1;
}

double PullChoice::share() const {
  return static_cast<double>(needs_[chosen_]) / static_cast<double>(blocks_);
}

void PullChoice::learn(Duration compute, std::span<const PullResponse> responses) {
  if (responses.empty() || responses.size() <= blocks_on_.rbegin()->first) return;
  std::vector<std::pair<Duration, uint32_t>> answers;
  for (const auto& [shard, blocks] : blocks_on_)
    answers.emplace_back(responses[shard].time, blocks);
  std::sort(answers.begin(), answers.end());
  const Duration first = answers.front().first;
  if (compute <= Duration::zero() || first < Duration::zero()) return;
  if (pulls_.size() == kPullsKept) pulls_.pop_front();
  Pull& pull = pulls_.emplace_back();
  pull.first = seconds(first);
  uint32_t here = 0;
  auto answer = answers.begin();
  Duration last = first;
  for (const uint32_t need : needs_) {
    for (; here < need; ++answer) {
      here += answer->second;
      last = answer->first;
    }
    pull.times.push_back(seconds(compute + last - first));
  }
}

// The c-th of n draws from the m pulls, sorted, is the i-th of them with probability
// G(i / m) - G((i - 1) / m), G(p) = P(at least c of n are among the first p).
void PullChoice::weigh(uint32_t cutoff, uint32_t alive) {
  if (alive > kWorkersWeighed) {
    const double share = static_cast<double>(cutoff) / alive;
    alive = kWorkersWeighed;
    cutoff = static_cast<uint32_t>(std::lround(share * kWorkersWeighed));
  }
  cutoff = std::clamp(cutoff, 1u, alive);
  const auto pulls = static_cast<double>(pulls_.size());
  weights_.clear();
  double before = 0.0;
  for (size_t i = 1; i <= pulls_.size(); ++i) {
    const double until = at_least(cutoff, alive, static_cast<double>(i) / pulls);
    weights_.push_back(until - before);
    before = until;
  }
}

PullChoice::ExpectedThroughput PullChoice::expected_throughput(size_t candidate, double first) {
  column_.clear();
  for (const Pull& pull : pulls_) column_.push_back(pull.times[candidate] + first);
  std::sort(column_.begin(), column_.end());
  ExpectedThroughput expected;
  for (size_t i = 0; i < column_.size(); ++i) {
    expected.value += weights_[i] * needs_[candidate] / column_[i];
    expected.time += weights_[i] * column_[i];
  }
  return expected;
}

std::optional<event::PullShare> PullChoice::decide(Step step, uint32_t cutoff, uint32_t alive) {
  if (step < warmup_ || pulls_.size() < kPullsLeast || alive == 0) return std::nullopt;
  weigh(cutoff, alive);
  double first = pulls_.front().first;
  for (const Pull& pull : pulls_) first = std::min(first, pull.first);
  const ExpectedThroughput all = expected_throughput(needs_.size() - 1, first);
  ExpectedThroughput best = all;
  size_t at = needs_.size() - 1;
  ExpectedThroughput now = all;
  for (size_t i = needs_.size() - 1; i-- > 0;) {
    const ExpectedThroughput each = expected_throughput(i, first);
    if (i == chosen_) now = each;
    if (each.value <= best.value) continue;
    best = each;
    at = i;
  }
  if (at == chosen_ || best.value < kWorthChanging * now.value) return std::nullopt;
  chosen_ = at;
  return event::PullShare{.share = share(),
                          .shards_left_out = left_out_[at],
                          .shards = static_cast<uint32_t>(blocks_on_.size()),
                          .step_seconds = best.time,
                          .all_seconds = all.time,
                          .pulls = pulls_.size()};
}

}  // namespace drover

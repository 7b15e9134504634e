#include "policy/balance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/check.h"
#include "core/random_draw.h"

namespace drover {
namespace {

constexpr std::array<double, 4> kWeights = {0.03, 0.1, 0.3, 0.6};  // of the newest run-time
constexpr double kErrorFading = 0.98;
constexpr double kMoveFading = 0.998;  // per step; slow, because the fixed part hardly changes
constexpr double kMoves = 0.04;
// The prior of the estimate: this number of moves with fixed() = 0.
constexpr double kPriorMoves = 20.0;
constexpr double kFixedMost = 0.8;  // of the fastest worker's time
// Estimated ratio of a censored run-time to its bound.
constexpr double kBeyondBound = 1.2;
// Late arrivals of older steps are ignored.
constexpr size_t kStepsKept = 64;
// Smaller changes are ignored: they are noise, and each change costs messages.
constexpr double kDeadBand = 0.02;

}  // namespace

Balancer::Balancer(const BalanceSettings& settings) : settings_(settings) {
  DROVER_CHECK(settings.least > 0.0 && settings.least <= 1.0);
  DROVER_CHECK(settings.most >= 1.0);
}

const Balancer::Planned* Balancer::find(Step step) const {
  if (planned_.empty() || step < planned_.front().step) return nullptr;
  const auto found = std::find_if(planned_.begin(), planned_.end(),
                                  [&](const Planned& each) { return each.step == step; });
  return found == planned_.end() ? nullptr : &*found;
}

double Balancer::share(Step step, WorkerId worker) const {
  const Planned* const planned = find(step);
  return planned != nullptr && worker < planned->shares.size() ? planned->shares[worker] : 1.0;
}

double Balancer::fixed() const {
  if (moved_per_time_ <= 0.0) return 0.0;
  return std::clamp((moved_ - followed_) / moved_per_time_, 0.0, kFixedMost * shortest_);
}

double Balancer::log_speed(WorkerId worker) const { return speeds_[worker].level[best_]; }

// Workers are moved in pairs, one up and one down, so that the moves of a step sum to zero. Random
// draws decide which one, so that no worker is moved in one direction for long.
double Balancer::move(Step step, size_t place, size_t count) const {
  if (place / 2 * 2 + 1 >= count) return 0.0;  // the odd one out
  if (step >= settings_.warmup) return 0.0;
  const uint64_t bits =
      draw({settings_.seed, static_cast<uint64_t>(Purpose::kShares), step, place / 2});
  const bool up = ((bits ^ place) & 1) != 0;
  return up ? kMoves : -kMoves;
}

void Balancer::plan(Step step, std::span<const WorkerId> alive) {
  DROVER_CHECK(!alive.empty());
  const size_t workers = std::max<size_t>(speeds_.size(), alive.back() + size_t{1});
  speeds_.resize(workers);
  const Planned* const last = planned_.empty() ? nullptr : &planned_.back();
  Planned next{.step = step,
               .shares = std::vector<double>(workers, 1.0),
               .planned = std::vector<double>(workers, 1.0)};
  const bool knows = std::all_of(alive.begin(), alive.end(),
                                 [&](WorkerId worker) { return speeds_[worker].seen > 0; });
  std::vector<double> costs;
  if (step >= settings_.warmup && knows) {
    for (const WorkerId worker : alive) costs.push_back(std::exp(log_speed(worker)));
    balanced_shares(costs, settings_.least, settings_.most, static_cast<double>(alive.size()),
                    targets_);
    const auto before = [&](WorkerId worker) {
      return last != nullptr && worker < last->planned.size() ? last->planned[worker] : 1.0;
    };
    bool changed = false;
    double sum = 0.0;
    for (size_t i = 0; i < alive.size(); ++i) {
      changed = changed || std::abs(targets_[i] / before(alive[i]) - 1.0) > kDeadBand;
      sum += before(alive[i]);
    }
    // A worker joined or left, so the shares of the others must change.
    changed = changed || std::abs(sum - static_cast<double>(alive.size())) > kDeadBand;
    for (size_t i = 0; i < alive.size(); ++i)
      next.planned[alive[i]] = changed ? targets_[i] : before(alive[i]);
  }
  // Moves of unequal shares do not cancel and may cross a bound, so the sum and the bounds are
  // applied again.
  costs.clear();
  for (size_t i = 0; i < alive.size(); ++i) {
    costs.push_back(1.0 / (next.planned[alive[i]] * (1.0 + move(step, i, alive.size()))));
  }
  balanced_shares(costs, settings_.least, settings_.most, static_cast<double>(alive.size()),
                  targets_);
  for (size_t i = 0; i < alive.size(); ++i) next.shares[alive[i]] = targets_[i];
  planned_.push_back(std::move(next));
  if (planned_.size() > kStepsKept) planned_.pop_front();
}

std::vector<uint32_t> Balancer::deal(Step step, std::span<const WorkerId> alive, uint32_t batch) {
  plan(step, alive);
  std::vector<double>& shares = planned_.back().shares;
  std::vector<double> dealt;
  for (const WorkerId worker : alive) dealt.push_back(shares[worker]);
  std::vector<uint32_t> samples = whole_samples(dealt, batch, uint64_t{batch} * alive.size());
  for (size_t i = 0; i < alive.size(); ++i)
    shares[alive[i]] = static_cast<double>(samples[i]) / static_cast<double>(batch);
  return samples;
}

void Balancer::observe(const Planned& planned, WorkerId worker, double seconds) {
  if (worker >= planned.shares.size() || !(seconds > 0.0)) return;
  speeds_.resize(std::max<size_t>(speeds_.size(), worker + size_t{1}));
  Speed& speed = speeds_[worker];
  const double share = planned.shares[worker];
  const double a = fixed();
  const double log_cost = std::log(std::max(seconds - a, 0.1 * seconds) / share);
  if (speed.seen++ == 0) {
    speed.level.fill(log_cost);
    return;
  }
  const double expected = a + std::exp(speed.level[best_]) * planned.planned[worker];
  const double z = share / planned.planned[worker] - 1.0;
  const double y = std::clamp(seconds / expected - 1.0, -0.5, 0.5);  // limits outliers
  if (moved_per_time_ == 0.0) moved_per_time_ = kPriorMoves * kMoves * kMoves / expected;
  moved_ += z * z;
  followed_ += z * y;
  moved_per_time_ += z * z / expected;
  for (size_t m = 0; m < kMemories; ++m) {
    const double off = log_cost - speed.level[m];
    errors_[m] += std::min(off * off, 1.0);
    speed.level[m] += kWeights[m] * off;
  }
}

void Balancer::bound(const Planned& planned, WorkerId worker, double seconds) {
  if (worker >= planned.shares.size() || !(seconds > 0.0)) return;
  speeds_.resize(std::max<size_t>(speeds_.size(), worker + size_t{1}));
  Speed& speed = speeds_[worker];
  const double least =
      std::log(kBeyondBound * std::max(seconds - fixed(), 0.1 * seconds) / planned.shares[worker]);
  if (speed.seen++ == 0) speed.level.fill(least);
  for (size_t m = 0; m < kMemories; ++m) {
    if (least > speed.level[m]) speed.level[m] += kWeights[m] * (least - speed.level[m]);
  }
}

void Balancer::learn(const StepTimes& times) {
  const Planned* const planned = find(times.step);
  if (planned == nullptr) return;
  for (double& error : errors_) error *= kErrorFading;
  moved_ *= kMoveFading;
  followed_ *= kMoveFading;
  moved_per_time_ *= kMoveFading;
  double shortest = std::numeric_limits<double>::infinity();
  for (WorkerId worker = 0; worker < times.known.size(); ++worker) {
    if (times.known[worker] == Known::kArrived) observe(*planned, worker, times.seconds[worker]);
    if (times.known[worker] == Known::kLonger) bound(*planned, worker, times.seconds[worker]);
    if (times.known[worker] == Known::kArrived && times.seconds[worker] > 0.0)
      shortest = std::min(shortest, times.seconds[worker]);
  }
  // Updated last, so that fixed() is the same for all workers of the step.
  if (shortest < std::numeric_limits<double>::infinity()) shortest_ = shortest;
  best_ = static_cast<size_t>(std::min_element(errors_.begin(), errors_.end()) - errors_.begin());
}

void Balancer::learn_late(Step step, WorkerId worker, double seconds) {
  if (const Planned* const planned = find(step)) observe(*planned, worker, seconds);
}

void balanced_shares(std::span<const double> costs, double least, double most, double sum,
                     std::vector<double>& shares) {
  shares.assign(costs.size(), 0.0);
  // The sum increases with c, so bisection finds c.
  double low = 0.0;
  double high = most * *std::max_element(costs.begin(), costs.end());
  const auto share = [&](double c, size_t i) { return std::clamp(c / costs[i], least, most); };
  for (int turn = 0; turn < 60; ++turn) {
    const double middle = (low + high) / 2.0;
    double all = 0.0;
    for (size_t i = 0; i < costs.size(); ++i) all += share(middle, i);
    (all < sum ? low : high) = middle;
  }
  for (size_t i = 0; i < costs.size(); ++i) shares[i] = share(high, i);
}

std::vector<uint32_t> whole_samples(std::span<const double> shares, uint32_t batch,
                                    uint64_t total) {
  DROVER_CHECK(total >= shares.size());
  std::vector<uint32_t> samples;
  std::vector<double> rest;
  uint64_t sum = 0;
  for (const double share : shares) {
    const double exact = std::max(1.0, share * batch);
    samples.push_back(static_cast<uint32_t>(exact));
    rest.push_back(exact - std::floor(exact));
    sum += samples.back();
  }
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return rest[a] != rest[b] ? rest[a] > rest[b] : a < b; });
  for (size_t i = 0; sum < total; i = (i + 1) % order.size(), ++sum) ++samples[order[i]];
  while (sum > total) {
    // The minimum of 1 sample can make the sum too large. Take the excess from the largest.
    --*std::max_element(samples.begin(), samples.end());
    --sum;
  }
  return samples;
}

}  // namespace drover

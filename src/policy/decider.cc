#include "policy/decider.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/text.h"
#include "policy/wording.h"

namespace drover {
namespace {

constexpr double kRounding = 1e-9;

std::string counted(uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace

Decider::Decider(std::unique_ptr<Policy> policy, const DecisionLimits& limits,
                 std::optional<BalanceSettings> balance)
    : policy_(std::move(policy)), limits_(limits) {
  if (balance) balancer_.emplace(*balance);
  DROVER_CHECK(policy_ != nullptr);
  DROVER_CHECK(limits.min_inclusion >= 0.0);
  DROVER_CHECK(limits.min_inclusion <= 1.0);
  DROVER_CHECK(limits.max_wait > 0.0);
}

void Decider::plan_shares(Step step, std::span<const WorkerId> alive) {
  if (balancer_) balancer_->plan(step, alive);
}

double Decider::share(Step step, WorkerId worker) const {
  return balancer_ ? balancer_->share(step, worker) : 1.0;
}

std::vector<uint32_t> Decider::deal(Step step, std::span<const WorkerId> members, uint32_t batch) {
  if (!balancer_) return std::vector<uint32_t>(members.size(), batch);
  return balancer_->deal(step, members, batch);
}

Choice Decider::decide(const Situation& asked) {
  DROVER_CHECK(!asked.alive.empty());
  Situation situation = asked;
  const auto alive = static_cast<uint32_t>(situation.alive.size());
  if (balancer_) {
    shares_.clear();
    for (const WorkerId worker : situation.alive)
      shares_.push_back(balancer_->share(situation.step, worker));
    situation.shares = shares_;
    situation.fixed = balancer_->fixed();
  }
  Choice choice = policy_->decide(situation);
  if (const auto worker = neglected(situation.alive)) {
    const uint64_t left_out = inclusion_of(*worker).left_out;
    choice.cutoff = alive;
    choice.time_limit = kNoTimeLimit;
    choice.review = {};
    const std::string why =
        left_out > 0
            ? fmt::format("was dropped in {} in a row", counted(left_out, "step"))
            : fmt::format("must be in {} of the steps", short_percent(limits_.min_inclusion));
    choice.reason = fmt::format("min-inclusion: wait for {}, because worker {} {}",
                                worker_count_text(alive, alive), *worker, why);
    waits_for_all_ = situation.step;
  }
  hold_within_limits(alive, situation.unit, choice);
  return choice;
}

void Decider::hold_within_limits(uint32_t alive, TimeUnit unit, Choice& choice) const {
  if (choice.cutoff > alive) {
    choice.cutoff = alive;
    choice.reason += fmt::format("; limited to {} alive", counted(alive, "worker"));
  }
  const uint32_t floor = std::clamp(limits_.at_least, 1u, alive);
  if (choice.cutoff < floor) {
    choice.cutoff = floor;
    choice.reason += fmt::format("; raised to the minimum of {}", limits_.at_least);
    if (floor < limits_.at_least) {
      choice.reason += fmt::format(", limited to {} alive", counted(floor, "worker"));
    }
  }
  if (limits_.max_wait < choice.time_limit) {
    choice.time_limit = limits_.max_wait;
    choice.reason += fmt::format("; wait at most {}", time_text(limits_.max_wait, unit));
  }
  if (floor > std::max(choice.at_least, 1u)) {
    choice.at_least = floor;
    if (choice.time_limit < kNoTimeLimit) {
      choice.reason += fmt::format("; wait longer for the first {}", floor);
    }
  }
  choice.at_least = std::clamp(choice.at_least, 1u, choice.cutoff);
}

std::optional<Choice> Decider::reconsider(const StepProgress& progress) {
  if (waits_for_all_ == progress.step) return std::nullopt;
  std::optional<Choice> choice = policy_->reconsider(progress);
  if (choice)
    hold_within_limits(static_cast<uint32_t>(progress.arrived.size()), progress.unit, *choice);
  return choice;
}

void Decider::learn(const StepTimes& observed) {
  StepTimes times = observed;
  if (balancer_) {
    times.shares.clear();
    for (WorkerId worker = 0; worker < times.known.size(); ++worker)
      times.shares.push_back(balancer_->share(times.step, worker));
    times.fixed = balancer_->fixed();
    balancer_->learn(times);
  }
  policy_->learn(times);
  const double share = limits_.min_inclusion;
  if (share <= 0.0) return;
  const bool waited_for_all = waits_for_all_ == times.step;
  for (WorkerId worker = 0; worker < times.known.size(); ++worker) {
    if (worker == inclusions_.size()) inclusions_.push_back(inclusion_of(worker));
    if (times.known[worker] == Known::kNothing) continue;
    Inclusion& inclusion = inclusions_[worker];
    if (times.known[worker] == Known::kArrived || waited_for_all) {
      // The credit is capped at what the longest allowed run of steps without the worker costs, or
      // one such step, so that inclusion long ago does not count.
      inclusion.credit = std::min(inclusion.credit + 1.0 - share, std::max(1.0 - share, share));
      inclusion.left_out = 0;
    } else {
      inclusion.credit -= share;
      ++inclusion.left_out;
    }
  }
}

void Decider::learn_late(Step step, WorkerId worker, double seconds) {
  if (balancer_) balancer_->learn_late(step, worker, seconds);
  policy_->learn_late(step, worker, seconds);
}

Decider::Inclusion Decider::inclusion_of(WorkerId worker) const {
  if (worker < inclusions_.size()) return inclusions_[worker];
  return {.credit = 1.0 - limits_.min_inclusion};  // as if it had been in one step
}

// The worker alive with the lowest credit, if leaving it out once more would make it negative.
std::optional<WorkerId> Decider::neglected(std::span<const WorkerId> alive) const {
  if (limits_.min_inclusion <= 0.0) return std::nullopt;
  std::optional<WorkerId> worst;
  for (const WorkerId worker : alive) {
    const double credit = inclusion_of(worker).credit;
    if (credit >= limits_.min_inclusion - kRounding) continue;
    if (!worst || credit < inclusion_of(*worst).credit) worst = worker;
  }
  return worst;
}

}  // namespace drover

#include "coordinator/step_decision.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/check.h"

namespace drover {
namespace {

// A longer limit than this counts as no limit.
constexpr double kTimeLimitMax = 365.0 * 24 * 3600;
// The shortest time between two reviews of a step.
constexpr double kReviewPause = 1e-6;

// Zero on the wire means no limit, so the shortest limit is 1 ns.
Duration wire_time_limit(double limit) {
  if (!(limit < kTimeLimitMax)) return Duration::zero();
  return std::max(Duration(1), from_seconds(limit));
}

bool wants_review(const Choice& choice) {
  return choice.review.arrivals < ~uint32_t{0} || choice.review.at < kNoTimeLimit;
}

// How many arrivals a shard collects before it reports them: at most 64 reports in a step.
uint32_t report_every(size_t workers) { return static_cast<uint32_t>(1 + workers / 64); }

}  // namespace

StepDecision::StepDecision(const CoordinatorSettings& settings, std::unique_ptr<Policy> policy)
    : asynchronous_(settings.asynchronous), batch_(settings.batch) {
  DROVER_CHECK((policy == nullptr) == asynchronous_.has_value());
  if (policy) decider_.emplace(std::move(policy), settings.limits, settings.balance);
}

DecisionRecord StepDecision::open(const Opening& opening, const Membership& members) {
  expected_ = opening.available;
  opened_ = opening.now;
  // A shard opens a step at the moment when it closes the step before. Run-times therefore include
  // all costs of a step, and `overhead` is zero.
  const double noise = batch_ > 0 ? opening.noise_scale / batch_ : 0.0;
  choice_ = decider_ ? decider_->decide({.step = opening.step,
                                         .alive = expected_,
                                         .overhead = 0.0,
                                         .noise = noise,
                                         .members = members.count()})
                     : asynchronous_choice(members.count());
  if (wants_review(choice_)) arrivals_.open(expected_, opening.shards);
  DecisionRecord opened = record(opening.step, choice_.cutoff, members);
  opened.expected = std::exchange(choice_.expected, {});
  return opened;
}

DecisionRecord StepDecision::record(Step step, uint32_t cutoff, const Membership& members) const {
  return {.step = step,
          .cutoff = cutoff,
          .alive = members.count(),
          .reason = choice_.reason,
          .time_limit = time_limit(),
          .at = {},
          .model_stale = choice_.model_stale};
}

// The cutoff is only the number of gradients in a round: shards wait for nothing.
Choice StepDecision::asynchronous_choice(uint32_t members) const {
  const std::string round =
      "apply each gradient on arrival; a step is " + std::to_string(members) + " gradients";
  const auto& staleness = asynchronous_->staleness;
  if (!staleness) return {.cutoff = members, .reason = "async: " + round};
  return {.cutoff = members,
          .reason = "ssp: " + round + "; the fastest worker is at most " +
                    std::to_string(*staleness) + " gradients ahead of the slowest"};
}

bool StepDecision::on_arrived(ShardId shard, const Arrived& arrived, Duration lead) {
  if (!wants_review(choice_)) return false;
  arrivals_.on_arrived(shard, arrived, lead);
  return arrivals_.arrived() >= choice_.review.arrivals;
}

std::optional<TimePoint> StepDecision::review_at() const {
  if (!(choice_.review.at < kTimeLimitMax)) return std::nullopt;
  return opened_ + from_seconds(choice_.review.at);
}

// Shards follow the last decision meanwhile. No step waits for a review.
std::optional<DecisionRecord> StepDecision::review(Step step, const Membership& members,
                                                   TimePoint now) {
  const Choice before = choice_;
  choice_.review = {};
  if (arrivals_.arrived() == expected_.size()) return std::nullopt;
  double since = seconds(now - opened_);
  // An arrival may be reported before the step's opening was.
  for (const double time : arrivals_.times()) {
    if (time < kNoTimeLimit) since = std::max(since, time);
  }
  std::optional<Choice> revised =
      decider_->reconsider({.step = step, .now = since, .arrived = arrivals_.times()});
  if (!revised) return std::nullopt;
  choice_ = std::move(*revised);
  // Time is in whole nanoseconds: without a pause the next review would be at the same moment.
  choice_.review.at = std::max(choice_.review.at, since + kReviewPause);
  if (choice_.cutoff == before.cutoff && choice_.time_limit == before.time_limit)
    return std::nullopt;
  DecisionRecord revision = record(step, std::min(choice_.cutoff, expected(members)), members);
  revision.at = std::max(now - opened_, Duration(1));  // zero: the decision that opened the step
  return revision;
}

// How many of the expected workers are still members.
uint32_t StepDecision::expected(const Membership& members) const {
  const auto left = std::count_if(expected_.begin(), expected_.end(),
                                  [&](WorkerId worker) { return members.has(worker); });
  return left > 0 ? static_cast<uint32_t>(left) : members.count();
}

Decision StepDecision::order(const Membership& members) const {
  const uint32_t most = expected(members);
  return {.step = 0,
          .cutoff = std::min(choice_.cutoff, most),
          .time_limit = {},
          .at_least = std::min(choice_.at_least, most),
          .alive = members.list(),
          .report_every = wants_review(choice_) ? report_every(expected_.size()) : 0};
}

Duration StepDecision::time_limit() const { return wire_time_limit(choice_.time_limit); }

std::vector<uint32_t> StepDecision::deal(Step step, std::span<const WorkerId> members) {
  if (!decider_ || !decider_->balances()) return {};
  return decider_->deal(step, members, batch_);
}

void StepDecision::learn(const StepTimes& times) {
  if (decider_) decider_->learn(times);
}

void StepDecision::learn_late(Step step, WorkerId worker, Duration run_time) {
  if (decider_) decider_->learn_late(step, worker, seconds(run_time));
}

}  // namespace drover

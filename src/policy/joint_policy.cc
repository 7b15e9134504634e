#include "policy/joint_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "policy/close_rule.h"
#include "policy/expected_arrivals.h"
#include "policy/live_choice.h"
#include "policy/wording.h"

namespace drover {
namespace {

// What a plan must promise over waiting for all, which needs no forecast to be right.
constexpr double kMargin = 0.01;
// The warm-up ends after so few steps where the gain is at least this.
constexpr Step kFewSteps = 6;
constexpr double kSureGain = 0.2;
// A worker that was dropped so often in a row is let finish, and then about every fifth time.
constexpr uint32_t kDropsBeforeProbe = 2;
constexpr uint32_t kProbeEvery = 5;
// A worker that is slower than the close by this factor, in log time, is asked more rarely: it
// could recover a good deal and would still be dropped.
constexpr float kFar = 1.4F;
constexpr uint32_t kProbeFarEvery = 15;
// Of many workers, experts that are not in charge plan anew only now and then.
constexpr size_t kManyWorkers = 512;
constexpr Step kPlanEvery = 4;

constexpr Expert kInOrder[] = {Expert::kNames, Expert::kCommon, Expert::kRaw, Expert::kLearned};

// The first expert in charge: the first there is, in this order.
size_t first_of(const std::array<bool, kExperts>& experts) {
  for (const Expert expert : kInOrder)
    if (experts[static_cast<size_t>(expert)]) return static_cast<size_t>(expert);
  return 0;
}

// Equally likely rows, at most `count`, that stand for weighted ones: evenly by their weights.
void resample(const WeightedForecast& drawn, uint32_t count, Forecast& out) {
  out.resize(count, drawn.samples.workers);
  double sum = 0.0;
  uint32_t row = 0;
  for (uint32_t k = 0; k < count; ++k) {
    const double place = (k + 0.5) / count;
    while (row + 1 < drawn.samples.samples && sum + drawn.weights[row] < place)
      sum += drawn.weights[row++];
    const std::span<const float> from = drawn.samples.row(row);
    std::copy(from.begin(), from.end(), out.row(k).begin());
  }
}

}  // namespace

JointPolicy::JointPolicy(const JointPolicySettings& settings, std::unique_ptr<Forecaster> learned)
    : settings_(settings),
      learned_(std::move(learned)),
      warm_up_(settings.warmup),
      forecaster_(settings.seed),
      race_(kExperts, first_of(settings.experts)),
      goal_(settings.objective),
      live_(settings.seed) {
  DROVER_CHECK(first_of(settings.experts) != 0);
}

bool JointPolicy::serves(Expert expert) const {
  if (!settings_.experts[static_cast<size_t>(expert)]) return false;
  return expert != Expert::kLearned || (learned_ != nullptr && learned_->ready(alive_));
}

void JointPolicy::draw(Expert expert, const Situation& situation) {
  if (expert == Expert::kLearned) {
    learned_->forecast(situation.step, situation.alive, drawn_.samples);
    drawn_.weights.assign(drawn_.samples.samples, 1.0 / drawn_.samples.samples);
  } else {
    const View view = expert == Expert::kCommon ? View::kCommon
                      : expert == Expert::kRaw  ? View::kRaw
                                                : View::kNames;
    forecaster_.forecast(view, situation.step, situation.alive, drawn_);
  }
  ShareScaling::to_shares(situation, drawn_.samples);
}

// Where workers have unequal shares, an arrival counts as much as its worker's share.
void JointPolicy::sort_samples(const Situation& situation) {
  samples_.times = drawn_.samples;
  samples_.weights = drawn_.weights;
  samples_.gradients.clear();
  if (situation.shares.empty()) return sorter_.sort(samples_.times);
  samples_.gradients.resize(samples_.times.times.size());
  pairs_.resize(samples_.times.workers);
  for (uint32_t k = 0; k < samples_.times.samples; ++k) {
    const std::span<float> row = samples_.times.row(k);
    for (size_t i = 0; i < row.size(); ++i)
      pairs_[i] = {row[i], static_cast<float>(situation.shares[i])};
    std::sort(pairs_.begin(), pairs_.end());
    float sum = 0.0F;
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = pairs_[i].first;
      sum += pairs_[i].second;
      samples_.gradients[k * row.size() + i] = sum;
    }
  }
  samples_.times.sorted = true;
}

void JointPolicy::plan(Expert expert, const Situation& situation) {
  draw(expert, situation);
  sort_samples(situation);
  const JointPlan all = JointSearch::all(samples_, terms_);
  const JointPlan best = search_.best(samples_, terms_);
  plans_[static_cast<size_t>(expert)] = best.rate() > (1.0 + kMargin) * all.rate() ? best : all;
  if (static_cast<size_t>(expert) == first_of(settings_.experts) ||
      plans_[0].cutoff != samples_.times.workers)
    plans_[0] = all;
}

void JointPolicy::plan_all(const Situation& situation) {
  const bool same = plans_[0].cutoff == situation.alive.size();
  for (const Expert expert : kInOrder) {
    const auto i = static_cast<size_t>(expert);
    const bool due = situation.alive.size() <= kManyWorkers || race_.leader() == i || !same ||
                     plans_[i].cutoff == 0 || situation.step % kPlanEvery == i % kPlanEvery;
    if (serves(expert) && due) plan(expert, situation);
    if (!serves(expert)) plans_[i] = plans_[0];
  }
}

bool JointPolicy::is_early(const JointPlan& plan) const {
  return warm_up_.seen() < kFewSteps || plan.rate() < (1.0 + kSureGain) * plans_[0].rate();
}

Choice JointPolicy::decide(const Situation& situation) {
  const Terms terms = goal_.terms(situation.overhead, situation.noise);
  terms_ = {.overhead = situation.overhead, .noise = terms.noise};
  alive_.clear();
  reviewed_ = false;
  const bool warming_up = !warm_up_.over();
  if (!forecaster_.ready() || (warming_up && warm_up_.seen() < kFewSteps))
    return warm_up_.choice(situation);
  alive_.assign(situation.alive.begin(), situation.alive.end());
  plan_all(situation);
  const size_t expert = race_.leader();
  const JointPlan& plan = plans_[expert];
  if (warming_up && is_early(plan)) return warm_up_.choice(situation);
  const auto alive = static_cast<uint32_t>(situation.alive.size());
  const bool by_learned = expert == static_cast<size_t>(Expert::kLearned);
  Choice choice{
      .cutoff = plan.cutoff,
      .time_limit = plan.time_limit,
      .at_least = plan.at_least,
      .reason = fmt::format(
          "bayes: wait for {}{}; expect {} at {}; {}: {}", worker_count_text(plan.cutoff, alive),
          time_limit_text(plan.time_limit, situation.unit), rate_text(plan.rate(), situation.unit),
          time_text(plan.time - situation.overhead, situation.unit), kExpertNames[expert],
          by_learned ? learned_->basis() : forecaster_.basis()),
      .model_stale = learned_ != nullptr && learned_->model_stale()};
  plan_live(situation, plan, choice);
  explore(situation, plan.time - situation.overhead, choice);
  return choice;
}

// What is recorded as expected, and reviewed inside the step, are the draws of the expert in
// charge. A step that waits for all is not reviewed: closing it early is what was decided against.
void JointPolicy::plan_live(const Situation& situation, const JointPlan& plan, Choice& choice) {
  constexpr uint32_t kRows = 64;
  const auto expert = static_cast<Expert>(race_.leader());
  draw(expert == Expert::kAll ? kInOrder[0] : expert, situation);
  Forecast rows;
  resample(drawn_, std::min(kRows, std::max(1U, drawn_.samples.samples)), rows);
  const bool waits_for_all =
      plan.cutoff == situation.alive.size() && plan.time_limit == kNoTimeLimit;
  if (settings_.live && !waits_for_all) {
    Terms terms = goal_.long_run();
    // No more than what is expected of this step: if all have become slower, the throughput of the
    // past is out of reach, and no arrival would be worth its wait.
    terms.lambda = std::min(plan.rate(), terms.lambda.value_or(plan.rate()));
    live_.begin(rows, situation.shares, terms);
    choice.review =
        live_.plan({plan.cutoff, plan.time_limit}, plan.at_least, plan.time - situation.overhead);
    reviewed_ = true;
  }
  sorter_.sort(rows);
  choice.expected = expected_arrivals(rows);
}

std::optional<Choice> JointPolicy::reconsider(const StepProgress& progress) {
  if (!reviewed_) return std::nullopt;
  const std::optional<LiveStep::Revision> revision = live_.review(progress);
  if (!revision) return std::nullopt;
  return live_choice("bayes", *revision, progress, live_.workers());
}

// Only workers that are expected after the close: another would be missed in the next step.
void JointPolicy::explore(const Situation& situation, double close, Choice& choice) const {
  const Levels& levels = forecaster_.levels();
  const auto soonest = static_cast<float>(std::log(close));
  for (const WorkerId worker : situation.alive) {
    const uint32_t dropped = worker < dropped_.size() ? dropped_[worker] : 0;
    if (dropped < kDropsBeforeProbe || !levels.knows(worker)) continue;
    const float level = levels.level(levels.best(), worker);
    if (level <= soonest) continue;
    const uint32_t every = level < soonest + kFar ? kProbeEvery : kProbeFarEvery;
    if (dropped == kDropsBeforeProbe || (dropped + worker) % every == 0)
      choice.probes.push_back(worker);
  }
}

// What each plan would have earned in the step as it is believed to have been.
void JointPolicy::hold_race() {
  forecaster_.last_step(alive_, last_times_);
  if (last_times_.empty()) return;
  std::sort(last_times_.begin(), last_times_.end());
  const auto workers = static_cast<uint32_t>(last_times_.size());
  std::vector<RuleRace::Result> results;
  for (const JointPlan& plan : plans_) {
    const StepClose close = close_of({.cutoff = std::clamp(plan.cutoff, 1U, workers),
                                      .time_limit = plan.time_limit,
                                      .at_least = std::clamp(plan.at_least, 1U, workers)},
                                     last_times_);
    results.push_back({terms_.progress(close.contributors), terms_.overhead + close.elapsed});
  }
  race_.add(results);
}

void JointPolicy::learn(const StepTimes& times) {
  warm_up_.learn();
  const StepTimes& whole = scaling_.whole(times);
  forecaster_.learn(whole);
  if (learned_ != nullptr) learned_->learn(whole);
  if (!alive_.empty()) {
    goal_.learn(times);
    hold_race();
  }
  if (dropped_.size() < times.known.size()) dropped_.resize(times.known.size());
  for (WorkerId worker = 0; worker < times.known.size(); ++worker) {
    if (times.known[worker] == Known::kArrived) dropped_[worker] = 0;
    if (times.known[worker] == Known::kLonger) ++dropped_[worker];
  }
}

void JointPolicy::learn_late(Step step, WorkerId worker, double seconds) {
  seconds = scaling_.late(step, worker, seconds);
  forecaster_.learn_late(step, worker, seconds);
  if (learned_ != nullptr) learned_->learn_late(step, worker, seconds);
}

}  // namespace drover

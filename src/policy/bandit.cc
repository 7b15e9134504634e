#include "policy/bandit.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "policy/recent_steps.h"

namespace drover {
namespace {

constexpr uint32_t kArmsMax = 64;

}  // namespace

BanditPolicy::BanditPolicy(const BanditSettings& settings, Objective objective, Step warmup)
    : settings_(settings), objective_(objective), warm_up_(warmup) {
  DROVER_CHECK(settings.memory > 1.0);
}

// Sets the arms for this number of workers. An arm inherits from the old arm whose cutoff is
// nearest as a share of the workers.
void BanditPolicy::lay_out(uint32_t workers) {
  if (workers == workers_) return;
  const uint32_t count = std::min(workers, kArmsMax);
  std::vector<Arm> arms(count);
  size_t near = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const auto cutoff = static_cast<uint32_t>((uint64_t{i + 1} * workers + count / 2) /
                                              count);  // ends at `workers`
    if (!arms_.empty()) {
      const double share = static_cast<double>(cutoff) / static_cast<double>(workers);
      const auto distance = [&](size_t arm) {
        return std::abs(static_cast<double>(arms_[arm].cutoff) / static_cast<double>(workers_) -
                        share);
      };
      while (near + 1 < arms_.size() && distance(near + 1) <= distance(near)) ++near;
      arms[i] = arms_[near];
    }
    arms[i].cutoff = cutoff;
  }
  arms_ = std::move(arms);
  workers_ = workers;
}

double BanditPolicy::per_time(const Arm& arm, double sum, double weight) const {
  const auto gradients = static_cast<double>(arm.cutoff);
  if (objective_ == Objective::kRate) return gradients * weight / sum;
  return gradients * sum / weight * terms_.efficiency(arm.cutoff);
}

double BanditPolicy::most_by(const Arm& arm) const { return per_time(arm, arm.most, weight_); }

double BanditPolicy::earned_by(const Arm& arm) const {
  // Without a recent observation of the arm, its upper bound is used.
  return arm.weight > 0.0 ? per_time(arm, arm.earned, arm.weight) : most_by(arm);
}

std::string BanditPolicy::earnings(const Arm& arm, TimeUnit unit) const {
  const std::string earned = rate_text(earned_by(arm), unit);
  if (!terms_.noise) return earned;
  if (*terms_.noise <= 0.0) return fmt::format("{}, noise scale not known yet", earned);
  return fmt::format("a goodput of {}, noise scale {} gradients", earned,
                     number_text(*terms_.noise));
}

Choice BanditPolicy::decide(const Situation& situation) {
  const auto alive = static_cast<uint32_t>(situation.alive.size());
  lay_out(alive);
  overhead_ = situation.overhead;
  if (objective_ == Objective::kGoodput) terms_.noise = situation.noise;
  if (!warm_up_.over()) return warm_up_.choice(situation);

  const Arm* best = nullptr;
  double top_weight = 0.0;
  for (const Arm& arm : arms_) {
    if (best == nullptr || earned_by(arm) >= earned_by(*best)) best = &arm;
    top_weight = std::max(top_weight, arm.weight);
  }
  const double scale = earned_by(*best);
  const double spread = std::sqrt(std::log1p(top_weight));
  const Arm* chosen = nullptr;
  double chosen_index = 0.0;
  for (const Arm& arm : arms_) {
    const double hope = arm.weight < top_weight
                            ? settings_.explore * scale * spread *
                                  (1.0 / std::sqrt(arm.weight) - 1.0 / std::sqrt(top_weight))
                            : 0.0;
    const double index = std::min(earned_by(arm) + hope, most_by(arm));
    if (chosen != nullptr && index < chosen_index) continue;
    chosen = &arm;
    chosen_index = index;
  }
  const std::string wait = "bandit: wait for " + worker_count_text(chosen->cutoff, alive);
  if (chosen->weight < top_weight && chosen != best) {
    return {.cutoff = chosen->cutoff, .reason = wait + " to explore a cutoff not used recently"};
  }
  return {.cutoff = chosen->cutoff,
          .reason = fmt::format("{}, recently the best cutoff with {}", wait,
                                earnings(*chosen, situation.unit))};
}

void BanditPolicy::learn(const StepTimes& times) {
  warm_up_.learn();
  if (workers_ == 0) lay_out(participants(times));
  first_arrivals(times, arrived_);
  const double fading = 1.0 - 1.0 / settings_.memory;
  weight_ = fading * weight_ + 1.0;
  for (Arm& arm : arms_) {
    const bool shown = arm.cutoff <= arrived_.size();
    const double time = overhead_ + (shown ? arrived_[arm.cutoff - 1] : times.elapsed);
    const double value = objective_ == Objective::kRate ? time : 1.0 / time;
    arm.weight = fading * arm.weight + (shown ? 1.0 : 0.0);
    arm.earned = fading * arm.earned + (shown ? value : 0.0);
    arm.most = fading * arm.most + value;
  }
}

}  // namespace drover

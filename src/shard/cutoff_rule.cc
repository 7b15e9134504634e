#include "shard/cutoff_rule.h"

#include <algorithm>

namespace drover {

bool CutoffRule::on_decision(const Decision& decision, Step open) {
  const bool first = !last_ || last_->step != decision.step;
  last_ = decision;
  if (several_open_ && decision.step >= open) decisions_[decision.step] = decision;
  return first;
}

void CutoffRule::forget_before(Step open) {
  decisions_.erase(decisions_.begin(), decisions_.lower_bound(open));
}

const Decision* CutoffRule::decision_for(Step step) const {
  if (last_ && last_->step == step) return &*last_;
  const auto found = decisions_.find(step);
  return found == decisions_.end() ? nullptr : &found->second;
}

std::optional<TimePoint> CutoffRule::deadline(const Collecting& block, const Decision& decision) {
  if (!block.opened || decision.time_limit == Duration::zero()) return std::nullopt;
  return *block.opened + decision.time_limit;
}

bool CutoffRule::enough_at_deadline(const Collecting& block, const Decision& decision) {
  return block.pushes.contributed() >= std::max(decision.at_least, 1u);
}

bool CutoffRule::may_close(const Collecting& block, TimePoint now) const {
  if (!last_) return false;
  if (block.step > last_->step && block.step - last_->step > undecided_max_) return false;
  if (block.pushes.missing() == 0) return true;
  // Without a decision about its step, the block waits for all members.
  const Decision* const decision = decision_for(block.step);
  if (decision == nullptr) return false;
  if (block.pushes.contributed() >= decision->cutoff) {
    if (!has_grace()) return true;
    const auto enough = enough_since(block);
    if (enough && now > *enough) return true;
  }
  const auto limit = deadline(block, *decision);
  return limit && now > *limit && enough_at_deadline(block, *decision);
}

std::optional<TimePoint> CutoffRule::enough_since(const Collecting& block) const {
  const Decision* const decision = decision_for(block.step);
  if (decision == nullptr) return std::nullopt;
  const auto limit = deadline(block, *decision);
  std::optional<TimePoint> enough;
  uint32_t members = 0;
  for (const auto& [worker, at] : block.pushes.contributions()) {
    if (!block.members.has(worker)) continue;
    ++members;
    // Checked before the cutoff, since one push may reach both. The time limit also ends the grace.
    if (limit && members == std::max(decision->at_least, 1u)) enough = std::max(at, *limit);
    if (members == decision->cutoff) return enough ? std::min(*enough, at + grace_) : at + grace_;
  }
  return enough;
}

bool CutoffRule::has_timer(Step open) const {
  const Decision* const decision = decision_for(open);
  return has_grace() || (decision != nullptr && decision->time_limit != Duration::zero());
}

std::optional<TimePoint> CutoffRule::wake_at(const Collecting& block) const {
  const Decision* const decision = decision_for(block.step);
  if (decision == nullptr) return std::nullopt;
  const bool limited = decision->time_limit != Duration::zero();
  const bool complete =
      block.pushes.contributed() >= decision->cutoff || block.pushes.missing() == 0;
  std::optional<TimePoint> at;
  // With fewer gradients at the deadline, the block closes on the push that completes the minimum.
  if (limited && enough_at_deadline(block, *decision)) at = deadline(block, *decision);
  if (complete && has_grace()) {
    const auto enough = enough_since(block);
    if (enough) at = std::min(at.value_or(*enough), *enough);
  }
  return at;
}

}  // namespace drover

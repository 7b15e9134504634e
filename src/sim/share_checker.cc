#include "sim/share_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace drover {
namespace {

// If the speeds of two workers differ by less, either may get more samples.
constexpr double kClearlySlower = 1.5;
// Steps after the warm-up in which shares may still be changing.
constexpr Step kSettled = 4;

}  // namespace

void ShareChecker::on_lost(WorkerId worker) {
  shares_.erase(worker);
  if (std::erase(members_before_, worker) > 0) same_before_ = false;
}

void ShareChecker::restart() {
  shares_.clear();
  members_before_.clear();
}

std::vector<Share> ShareChecker::may_use(WorkerId worker, Step step, uint32_t samples) const {
  std::vector<Share> used;
  const auto shares = shares_.find(worker);
  if (shares == shares_.end()) return used;
  const std::vector<Share>& all = shares->second;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool in_force = all[i].from <= step || i + 1 < all.size();
    if (all[i].count == samples && in_force) used.push_back(all[i]);
  }
  return used;
}

std::string ShareChecker::on_decision(const Decision& decision) {
  if (settings_.batch == 0) return {};
  const std::vector<WorkerId> before = std::exchange(members_before_, decision.alive);
  const bool same = std::exchange(same_before_, true) && before == decision.alive;
  std::vector<Dealt> all;
  for (const WorkerId worker : decision.alive) {
    const auto shares = shares_.find(worker);
    if (shares != shares_.end() && shares->second.back().from <= decision.step) {
      all.push_back({worker, shares->second.back()});
      if (const std::string wrong = check_share(all.back()); !wrong.empty()) return wrong;
    } else if (std::find(before.begin(), before.end(), worker) != before.end()) {
      return fmt::format("worker {} was not sent its share of step {}", worker, decision.step);
    }
  }
  if (!same || all.empty() || all.size() < decision.alive.size()) return {};
  std::string wrong = check_speeds(decision.step, all);
  return wrong.empty() ? check_sum(decision.step, std::move(all)) : wrong;
}

// Shares are rounded to whole samples, and are at least one sample.
std::string ShareChecker::check_share(const Dealt& dealt) const {
  const double least = std::max(1.0, std::floor(settings_.least * settings_.batch));
  const double most = std::floor(settings_.most * settings_.batch) + 1.0;
  const auto count = static_cast<double>(dealt.share.count);
  if (least <= count && count <= most) return {};
  return fmt::format("worker {} gets {} samples, but the bounds are {} and {}", dealt.worker,
                     dealt.share.count, least, most);
}

std::string ShareChecker::check_sum(Step step, std::vector<Dealt> all) const {
  std::sort(all.begin(), all.end(),
            [](const Dealt& a, const Dealt& b) { return a.share.first < b.share.first; });
  uint64_t sum = all.back().share.count;
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    if (all[i].share.first + all[i].share.count > all[i + 1].share.first)
      return fmt::format("a sample of step {} is assigned to two workers", step);
    sum += all[i].share.count;
  }
  const Share& last = all.back().share;
  if (last.first + last.count > last.total)
    return fmt::format("more than the {} samples of step {} are assigned", last.total, step);
  if (sum == uint64_t{settings_.batch} * all.size()) return {};
  return fmt::format("{} samples of step {} are assigned to {} workers, instead of {} each", sum,
                     step, all.size(), settings_.batch);
}

std::string ShareChecker::check_speeds(Step step, const std::vector<Dealt>& all) const {
  if (!settings_.seconds || step < settings_.warmup + kSettled) return {};
  for (const Dealt& slow : all) {
    for (const Dealt& fast : all) {
      if (settings_.seconds(slow.worker) < kClearlySlower * settings_.seconds(fast.worker) ||
          slow.share.count <= fast.share.count)
        continue;
      return fmt::format("worker {} is slower than worker {}, but gets {} samples instead of {}",
                         slow.worker, fast.worker, slow.share.count, fast.share.count);
    }
  }
  return {};
}

}  // namespace drover

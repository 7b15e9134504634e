#include "policy/share_scaling.h"

#include <algorithm>

namespace drover {
namespace {

constexpr size_t kStepsKept = 64;  // late run-times of older steps are not converted

double of_share(double whole, double share, double fixed) {
  return whole > fixed ? fixed + (whole - fixed) * share : whole * share;
}
double of_whole(double part, double share, double fixed) {
  return part > fixed ? fixed + (part - fixed) / share : part / share;
}

}  // namespace

const StepTimes& ShareScaling::whole(const StepTimes& times) {
  if (times.shares.empty()) return times;
  whole_ = times;
  for (size_t i = 0; i < whole_.seconds.size(); ++i) {
    if (whole_.known[i] == Known::kNothing) continue;
    whole_.seconds[i] = of_whole(whole_.seconds[i], times.shares[i], times.fixed);
  }
  dealt_.push_back({times.step, times.fixed, times.shares});
  if (dealt_.size() > kStepsKept) dealt_.pop_front();
  return whole_;
}

double ShareScaling::late(Step step, WorkerId worker, double seconds) const {
  const auto dealt = std::find_if(dealt_.begin(), dealt_.end(),
                                  [&](const Dealt& each) { return each.step == step; });
  if (dealt == dealt_.end() || worker >= dealt->shares.size()) return seconds;
  return of_whole(seconds, dealt->shares[worker], dealt->fixed);
}

void ShareScaling::to_shares(const Situation& situation, Forecast& samples) {
  if (situation.shares.empty()) return;
  for (uint32_t k = 0; k < samples.samples; ++k) {
    const std::span<float> row = samples.row(k);
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<float>(
          of_share(static_cast<double>(row[i]), situation.shares[i], situation.fixed));
    }
  }
}

}  // namespace drover

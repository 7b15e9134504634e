#include "server/gradient_sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "server/kernels.h"

namespace drover {

std::optional<double> GradientSum::add(WorkerId worker, uint32_t samples, ConstBuffer gradient) {
  DROVER_CHECK(samples >= 1);
  DROVER_CHECK(gradient != nullptr);
  DROVER_CHECK(gradient->size() == length_);
  DROVER_CHECK(!has(worker));
  Taken taken = take(samples, std::move(gradient));
  if (!taken.squares || !std::isfinite(*taken.squares)) return taken.squares;
  workers_.push_back(worker);
  samples_ += samples;
  if (order_ == SumOrder::kArrival && !held_.empty()) {
    held_.front().gradient = std::move(taken.values);
    return taken.squares;
  }
  const auto place = std::find_if(held_.begin(), held_.end(),
                                  [&](const Held& held) { return held.worker > worker; });
  held_.insert(place,
               Held{.worker = worker, .samples = samples, .gradient = std::move(taken.values)});
  return taken.squares;
}

// Into a buffer of its own, so that nothing is changed before all of it is known to be good. The
// pool hands out what was let go last, which for the sum is the one before: it is still in the
// cache.
GradientSum::Taken GradientSum::take(uint32_t samples, ConstBuffer gradient) const {
  const bool adds = order_ == SumOrder::kArrival && !held_.empty();
  // Nobody else writes to it, so it can be held as it is.
  if (!adds && !gradient->foreign()) {
    const double squares = sum_of_squares(gradient->span());
    return {squares, std::move(gradient)};
  }
  SharedBuffer next = pool_->take(length_);
  const double squares = adds ? take_in(next->span(), held_.front().gradient->span(),
                                        gradient->span(), weight(samples))
                              : take_in(next->span(), gradient->span());
  if (!gradient->intact()) return {};
  return {squares, std::move(next)};
}

void GradientSum::reset() {
  samples_ = 0;
  workers_.clear();
  held_.clear();
}

bool GradientSum::has(WorkerId worker) const {
  return std::find(workers_.begin(), workers_.end(), worker) != workers_.end();
}

float GradientSum::weight(uint32_t samples) const {
  return static_cast<float>(static_cast<double>(samples) /
                            static_cast<double>(held_.front().samples));
}

float GradientSum::mean_factor() const {
  return static_cast<float>(static_cast<double>(held_.front().samples) /
                            static_cast<double>(samples_));
}

std::span<const float> GradientSum::part(size_t index, size_t begin, size_t size) const {
  DROVER_CHECK(begin <= length_);
  DROVER_CHECK(size <= length_ - begin);
  return held_[index].gradient->span().subspan(begin, size);
}

// Of what is held apart, relative to the first's samples: times mean_factor() it is the mean.
void GradientSum::write_sum(size_t begin, std::span<float> out) const {
  const size_t size = out.size();
  set_sum(out, part(0, begin, size), part(1, begin, size), weight(held_[1].samples));
  for (size_t i = 2; i < held_.size(); ++i)
    add_scaled(out, part(i, begin, size), weight(held_[i].samples));
}

void GradientSum::write_mean(size_t begin, std::span<float> out) const {
  DROVER_CHECK(!held_.empty());
  if (held_.size() == 1) return set_scaled(out, part(0, begin, out.size()), mean_factor());
  alignas(64) std::array<float, kScaledMax> chunk;
  for (size_t done = 0; done < out.size(); done += kScaledMax) {
    const std::span sum = std::span(chunk).first(std::min(kScaledMax, out.size() - done));
    write_sum(begin + done, sum);
    set_scaled(out.subspan(done, sum.size()), sum, mean_factor());
  }
}

void GradientSum::write_mean(size_t begin, std::span<float> out, SquareSum& squares) const {
  DROVER_CHECK(contributors() > 1);
  DROVER_CHECK(out.size() <= kScaledMax);
  if (held_.size() == 1) return set_scaled(out, part(0, begin, out.size()), mean_factor(), squares);
  alignas(64) std::array<float, kScaledMax> chunk;
  const std::span sum = std::span(chunk).first(out.size());
  write_sum(begin, sum);
  set_scaled(out, sum, mean_factor(), squares);
}

}  // namespace drover

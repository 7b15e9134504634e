#include "shard/gradient_sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/check.h"
#include "shard/kernels.h"

namespace drover {
namespace {

constexpr double kFarFromOverflow = 1e38;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

std::optional<double> GradientSum::add(WorkerId worker, uint32_t samples, ConstBuffer gradient,
                                       const NormLimit& limit) {
  DROVER_CHECK(samples >= 1);
  DROVER_CHECK(gradient != nullptr);
  DROVER_CHECK(gradient->size() == length_);
  DROVER_CHECK(!has(worker));
  if (limit.is_none()) return take(worker, samples, std::move(gradient));
  // A gradient in foreign memory may change after it is measured, so a copy is measured.
  double squares = 0.0;
  if (gradient->foreign()) {
    SharedBuffer copy = pool_->take(length_);
    squares = take_in(copy->span(), gradient->span());
    if (!gradient->intact()) return std::nullopt;
    gradient = std::move(copy);
  } else {
    squares = sum_of_squares(gradient->span());
  }
  if (!std::isfinite(squares)) return squares;
  if (squares > limit.squares) {
    if (limit.clip_to == 0.0) return squares;
    SharedBuffer shorter = pool_->take(length_);
    set_scaled(shorter->span(), gradient->span(),
               static_cast<float>(limit.clip_to / std::sqrt(squares)));
    gradient = std::move(shorter);
    const auto taken = take(worker, samples, std::move(gradient));
    return taken && std::isfinite(*taken) ? squares : taken;
  }
  return take(worker, samples, std::move(gradient), squares);
}

std::optional<double> GradientSum::take(WorkerId worker, uint32_t samples, ConstBuffer gradient,
                                        std::optional<double> squares) {
  if (order_ == SumOrder::kWorker || held_.empty()) {
    squares = hold(worker, samples, std::move(gradient), squares);
  } else if (!gradient->foreign()) {
    // Checked before it is added: it was just received, so it is in the cache.
    squares = add_own(samples, *gradient, squares ? *squares : sum_of_squares(gradient->span()));
  } else if (!sources_.empty()) {
    squares = add_in_place(samples, std::move(gradient));
  } else {
    squares = add_copy(samples, *gradient);
  }
  if (!squares || !std::isfinite(*squares)) return squares;
  workers_.push_back(worker);
  samples_ += samples;
  return squares;
}

std::optional<double> GradientSum::hold(WorkerId worker, uint32_t samples, ConstBuffer gradient,
                                        std::optional<double> known) {
  double squares = 0.0;
  ConstBuffer source;
  if (!gradient->foreign()) {
    // No other process writes to the buffer, so it is kept without a copy.
    squares = known ? *known : sum_of_squares(gradient->span());
  } else {
    SharedBuffer copy = pool_->take(length_);
    squares = take_in(copy->span(), gradient->span());
    if (!gradient->intact()) return std::nullopt;
    source = std::exchange(gradient, copy);
    if (order_ == SumOrder::kArrival && std::isfinite(squares)) sum_ = std::move(copy);
  }
  if (!std::isfinite(squares)) return squares;
  magnitude_bound_ = std::sqrt(squares);
  if (sum_) sources_.push_back({worker, samples, std::move(source)});
  const auto place = std::find_if(held_.begin(), held_.end(),
                                  [&](const Held& held) { return held.worker > worker; });
  held_.insert(place, Held{.worker = worker, .samples = samples, .gradient = std::move(gradient)});
  return squares;
}

double GradientSum::add_own(uint32_t samples, const FloatBuffer& gradient, double squares) {
  if (!std::isfinite(squares)) return squares;
  const double magnitude_bound =
      magnitude_bound_ + static_cast<double>(weight(samples)) * std::sqrt(squares);
  if (sum_ && magnitude_bound < kFarFromOverflow) {
    add_scaled(sum_->span(), gradient.span(), weight(samples));
  } else {
    SharedBuffer next = pool_->take(length_);
    set_sum(next->span(), held_.front().gradient->span(), gradient.span(), weight(samples));
    if (magnitude_bound >= kFarFromOverflow && !all_finite(next->span())) return kNaN;
    held_.front().gradient = next;
    sum_ = std::move(next);
  }
  sources_.clear();
  magnitude_bound_ = magnitude_bound;
  return squares;
}

// For a gradient in foreign memory if rebuild_sum() is not possible: checks a copy first.
std::optional<double> GradientSum::add_copy(uint32_t samples, const FloatBuffer& gradient) {
  const SharedBuffer copy = pool_->take(length_);
  const double squares = take_in(copy->span(), gradient.span());
  if (!gradient.intact()) return std::nullopt;
  return add_own(samples, *copy, squares);
}

// Adds to the sum directly, which is faster than a copy. If the gradient turns out to be unusable,
// which is rare, the sum is rebuilt from its sources. These are still unchanged, since no worker
// overwrites its gradient before the step has closed. (A worker that does corrupts only its own
// gradient.)
std::optional<double> GradientSum::add_in_place(uint32_t samples, ConstBuffer gradient) {
  const double squares = add_in(sum_->span(), gradient->span(), weight(samples));
  const bool intact = gradient->intact();
  if (intact && std::isfinite(squares)) {
    magnitude_bound_ += static_cast<double>(weight(samples)) * std::sqrt(squares);
    sources_.push_back({.worker = 0, .samples = samples, .gradient = std::move(gradient)});
    return squares;
  }
  rebuild_sum();
  if (!intact) return std::nullopt;
  return squares;
}

void GradientSum::rebuild_sum() {
  std::fill_n(sum_->data(), length_, -0.0F);  // the neutral element: -0 + x == x, also for -0
  for (const Held& source : sources_)
    add_in(sum_->span(), source.gradient->span(), weight(source.samples));
}

void GradientSum::reset() {
  samples_ = 0;
  workers_.clear();
  held_.clear();
  sum_ = nullptr;
  sources_.clear();
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

// Writes the sum of the held gradients with weights relative to the first. mean_factor() times this
// is the mean.
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

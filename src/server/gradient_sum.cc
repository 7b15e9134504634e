#include "server/gradient_sum.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "server/kernels.h"

namespace drover {

void GradientSum::add(WorkerId worker, uint32_t samples, SharedBuffer gradient) {
  DROVER_CHECK(samples >= 1);
  DROVER_CHECK(gradient != nullptr);
  DROVER_CHECK(gradient->size() == length_);
  DROVER_CHECK(gradient.use_count() == 1);
  DROVER_CHECK(!has(worker));
  workers_.push_back(worker);
  samples_ += samples;

  auto place = held_.end();
  if (order_ == SumOrder::kWorker) {
    place = std::find_if(held_.begin(), held_.end(),
                         [&](const Held& held) { return held.worker > worker; });
  } else if (held_.size() == 2) {
    add_scaled(held_[0].gradient->span(), held_[1].gradient->span(), weight(held_[1]));
    held_.pop_back();
    place = held_.end();
  }
  held_.insert(place, Held{.worker = worker, .samples = samples, .gradient = std::move(gradient)});
}

void GradientSum::reset() {
  samples_ = 0;
  workers_.clear();
  held_.clear();
}

bool GradientSum::has(WorkerId worker) const {
  return std::find(workers_.begin(), workers_.end(), worker) != workers_.end();
}

float GradientSum::weight(const Held& held) const {
  return static_cast<float>(static_cast<double>(held.samples) /
                            static_cast<double>(held_.front().samples));
}

float GradientSum::mean_factor() const {
  return static_cast<float>(static_cast<double>(held_.front().samples) /
                            static_cast<double>(samples_));
}

void GradientSum::write_sum(size_t begin, std::span<float> out) const {
  DROVER_CHECK(begin <= length_);
  DROVER_CHECK(out.size() <= length_ - begin);
  const auto part = [&](size_t index) {
    return std::span<const float>(held_[index].gradient->span()).subspan(begin, out.size());
  };
  if (held_.size() == 1) {
    std::copy_n(part(0).data(), out.size(), out.data());
    return;
  }
  set_sum(out, part(0), part(1), weight(held_[1]));
  for (size_t i = 2; i < held_.size(); ++i) add_scaled(out, part(i), weight(held_[i]));
}

void GradientSum::write_mean(size_t begin, std::span<float> out) const {
  DROVER_CHECK(!held_.empty());
  write_sum(begin, out);
  if (held_.size() > 1) scale(out, mean_factor());
}

void GradientSum::write_mean(size_t begin, std::span<float> out, SquareSum& squares) const {
  DROVER_CHECK(held_.size() > 1);
  write_sum(begin, out);
  scale_and_square(out, mean_factor(), squares);
}

}  // namespace drover

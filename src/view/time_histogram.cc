#include "view/time_histogram.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/quantile.h"

namespace drover {

// Bin b holds times from e^(b * log_width) to e^((b + 1) * log_width) seconds.
TimeHistogram::TimeHistogram(size_t exact_max, double width)
    : exact_max_(exact_max), log_width_(std::log1p(width)) {}

int TimeHistogram::bin_of(Duration time) const {
  return static_cast<int>(std::floor(std::log(seconds(time)) / log_width_));
}

void TimeHistogram::count_in_bins(Duration time) {
  if (time <= Duration::zero()) {
    ++zeros_;
    return;
  }
  const int bin = bin_of(time);
  if (counts_.empty()) first_ = bin;
  if (bin < first_) {
    counts_.insert(counts_.begin(), static_cast<size_t>(first_ - bin), 0);
    first_ = bin;
  }
  const auto place = static_cast<size_t>(bin - first_);
  if (place >= counts_.size()) counts_.resize(place + 1, 0);
  ++counts_[place];
}

void TimeHistogram::add(Duration time) {
  time = std::max(time, Duration::zero());
  ++count_;
  if (count_ <= exact_max_) {
    exact_.push_back(time);
    return;
  }
  for (const Duration each : exact_) count_in_bins(each);
  if (!exact_.empty()) exact_ = {};
  count_in_bins(time);
}

Duration TimeHistogram::at_rank(uint64_t rank) const {
  DROVER_CHECK(rank >= 1 && rank <= count_);
  if (!exact_.empty()) return value_in_order(std::vector(exact_), rank - 1);
  if (rank <= zeros_) return Duration::zero();
  uint64_t seen = zeros_;
  size_t place = 0;
  while ((seen += counts_[place]) < rank) ++place;
  return from_seconds(std::exp((first_ + static_cast<int>(place) + 0.5) * log_width_));
}

Duration TimeHistogram::percentile(uint64_t percent) const {
  DROVER_CHECK(count_ > 0 && percent <= 100);
  return at_rank(std::max<uint64_t>(1, (count_ * percent + 99) / 100));
}

uint64_t TimeHistogram::up_to(Duration time, bool whole_bin) const {
  const bool zero = time <= Duration::zero();
  if (!exact_.empty()) {
    const auto counts = [&](Duration each) {
      return each <= time || (whole_bin && !zero && bin_of(each) == bin_of(time));
    };
    return static_cast<uint64_t>(std::count_if(exact_.begin(), exact_.end(), counts));
  }
  uint64_t below = zeros_;
  if (zero || counts_.empty()) return below;
  const int bin = bin_of(time);
  for (size_t place = 0; place < counts_.size(); ++place) {
    if (first_ + static_cast<int>(place) <= bin) below += counts_[place];
  }
  return below;
}

void SecondsHistogram::add(double seconds) {
  const auto bound = std::lower_bound(upper_bounds.begin(), upper_bounds.end(), seconds);
  ++counts[static_cast<size_t>(bound - upper_bounds.begin())];
  sum += seconds;
}

}  // namespace drover

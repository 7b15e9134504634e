#include "view/time_histogram.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace drover {
namespace {

const double kLogWidth = std::log(1.01);
constexpr double kShortest_s = 1e-9;

// Bin b holds times from 1.01^b to 1.01^(b + 1) seconds.
int bin_of(double time_s) {
  return static_cast<int>(std::floor(std::log(std::max(time_s, kShortest_s)) / kLogWidth));
}

double middle_of(int bin) { return std::exp((bin + 0.5) * kLogWidth); }

}  // namespace

void TimeHistogram::add(Duration time) {
  const int bin = bin_of(seconds(time));
  if (counts_.empty()) first_ = bin;
  if (bin < first_) {
    counts_.insert(counts_.begin(), static_cast<size_t>(first_ - bin), 0);
    first_ = bin;
  }
  const auto place = static_cast<size_t>(bin - first_);
  if (place >= counts_.size()) counts_.resize(place + 1, 0);
  ++counts_[place];
  ++count_;
}

double TimeHistogram::at_rank(uint64_t rank) const {
  DROVER_CHECK(rank >= 1 && rank <= count_);
  uint64_t seen = 0;
  size_t place = 0;
  while ((seen += counts_[place]) < rank) ++place;
  return middle_of(first_ + static_cast<int>(place));
}

uint64_t TimeHistogram::up_to(double time_s) const {
  const int bin = bin_of(time_s);
  uint64_t below = 0;
  for (size_t place = 0; place < counts_.size(); ++place) {
    if (first_ + static_cast<int>(place) <= bin) below += counts_[place];
  }
  return below;
}

}  // namespace drover

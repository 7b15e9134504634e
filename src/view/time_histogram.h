// Histograms of times: one for quantiles of any number of times in bounded memory, and one with
// fixed bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/time.h"

namespace drover {

class TimeHistogram {
 public:
  // Stores up to `exact_max` times exactly; with more, counts them in bins. A bin spans a factor of
  // 1 + `width`.
  explicit TimeHistogram(size_t exact_max, double width = 0.01);
  TimeHistogram() : TimeHistogram(64) {}

  void add(Duration time);  // negative times count as zero
  uint64_t count() const { return count_; }

  // The `rank`-th smallest time, counted from 1, with an error of at most half a bin.
  // REQUIRES: 1 <= rank <= count().
  Duration at_rank(uint64_t rank) const;
  // The percentile by nearest rank.
  // REQUIRES: count() > 0, percent <= 100.
  Duration percentile(uint64_t percent) const;
  bool is_exact() const { return count_ <= exact_max_; }
  // The number of times that are at most `time`. With `whole_bin`, or if times are in bins, all
  // times in the bin of `time` count.
  uint64_t up_to(Duration time, bool whole_bin) const;

 private:
  int bin_of(Duration time) const;
  void count_in_bins(Duration time);

  size_t exact_max_;
  double log_width_;
  std::vector<Duration> exact_;  // all times, while there are at most exact_max_; then empty
  uint64_t zeros_ = 0;           // times of zero, which have no bin
  int first_ = 0;                // the bin of counts_[0]
  std::vector<uint32_t> counts_;
  uint64_t count_ = 0;
};

// Counts by upper bounds in seconds, as in Prometheus histograms.
struct SecondsHistogram {
  explicit SecondsHistogram(std::span<const double> bounds)
      : upper_bounds(bounds), counts(bounds.size() + 1) {}
  void add(double seconds);

  std::span<const double> upper_bounds;  // ascending; must outlive this
  std::vector<uint64_t> counts;          // per bucket, not cumulative; the last is above all bounds
  double sum = 0.0;
};

}  // namespace drover

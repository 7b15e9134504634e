// Histograms of times: one that answers quantiles of any number of times in a bounded amount of
// memory, and one that counts by fixed bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/time.h"

namespace drover {

class TimeHistogram {
 public:
  // Keeps the times themselves up to `exact_max` of them, then counts them in bins. A bin spans
  // the share `width` of its times.
  explicit TimeHistogram(size_t exact_max, double width = 0.01);
  TimeHistogram() : TimeHistogram(64) {}

  void add(Duration time);  // negative times count as zero
  uint64_t count() const { return count_; }

  // The `rank`-th smallest, counted from 1, to within half a bin.
  // REQUIRES: 1 <= rank <= count().
  Duration at_rank(uint64_t rank) const;
  // The least time that so many percent of the times do not exceed (nearest rank).
  // REQUIRES: count() > 0, percent <= 100.
  Duration percentile(uint64_t percent) const;
  bool is_exact() const { return count_ <= exact_max_; }
  // How many times are at most this one. With `whole_bin`, or if the times are in bins, those in
  // the bin of this time count too.
  uint64_t up_to(Duration time, bool whole_bin) const;

 private:
  int bin_of(Duration time) const;
  void count_in_bins(Duration time);

  size_t exact_max_;
  double log_width_;
  std::vector<Duration> exact_;  // all, while there are not too many; then empty
  uint64_t zeros_ = 0;           // the rest is in bins
  int first_ = 0;                // the bin of counts_[0]
  std::vector<uint32_t> counts_;
  uint64_t count_ = 0;
};

// Counts by upper bounds, in seconds, as Prometheus has them.
struct SecondsHistogram {
  explicit SecondsHistogram(std::span<const double> bounds)
      : upper_bounds(bounds), counts(bounds.size() + 1) {}
  void add(double seconds);

  std::span<const double> upper_bounds;  // ascending; must outlive this
  std::vector<uint64_t> counts;          // of each stretch alone; the last is above all bounds
  double sum = 0.0;
};

}  // namespace drover

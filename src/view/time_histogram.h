// TimeHistogram: counts of times in steps of one percent, so that millions of them have a median in
// a few kilobytes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/time.h"

namespace drover {

class TimeHistogram {
 public:
  void add(Duration time);
  uint64_t count() const { return count_; }

  // The `rank`-th smallest, counted from 1, in seconds and to within half a percent.
  // REQUIRES: 1 <= rank <= count().
  double at_rank(uint64_t rank) const;
  // How many are in the bin of this time, or below it.
  uint64_t up_to(double time_s) const;

 private:
  int first_ = 0;  // the bin of counts_[0]
  std::vector<uint32_t> counts_;
  uint64_t count_ = 0;
};

}  // namespace drover

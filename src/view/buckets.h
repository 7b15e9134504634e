// Buckets<T>: aggregates the steps of a run of any length in a bounded number of buckets.
//
// Bucket i holds steps [i * per, (i + 1) * per). When a step needs more than `limit` buckets,
// neighbors are merged and `per` doubles, so earlier steps need not be read again.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/ids.h"

namespace drover {

// T has merge(const T& later).
template <typename T>
class Buckets {
 public:
  // REQUIRES: limit >= 1.
  explicit Buckets(size_t limit) : limit_(limit) { DROVER_CHECK(limit >= 1); }

  // The bucket of `step`; new buckets are copies of `empty`.
  T& at(Step step, const T& empty) {
    while (step / per_ >= limit_) halve();
    const size_t place = static_cast<size_t>(step / per_);
    if (place >= buckets_.size()) buckets_.resize(place + 1, empty);
    return buckets_[place];
  }

  uint64_t per() const { return per_; }
  const std::vector<T>& all() const { return buckets_; }

 private:
  void halve() {
    for (size_t i = 0; i < buckets_.size(); ++i) {
      if (i % 2 == 1) {
        buckets_[i / 2].merge(buckets_[i]);
      } else if (i > 0) {
        buckets_[i / 2] = std::move(buckets_[i]);
      }
    }
    buckets_.resize((buckets_.size() + 1) / 2, T{});
    per_ *= 2;
  }

  size_t limit_;
  uint64_t per_ = 1;
  std::vector<T> buckets_;
};

}  // namespace drover

// SampleStream: which sample of the training data stands where in a worker's stream of samples.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "core/task_spec.h"
#include "tasks/data/dataset.h"
#include "worker/task.h"

namespace drover {

// Whether the data can be cut so; if not, why, and what to try.
Status check_partition(DataPartition partition, const Dataset& dataset);

class SampleStream {
 public:
  // `size` samples, or for text windows, of the training part. REQUIRES: check_partition is fine;
  // size >= 1.
  SampleStream(DataPartition partition, uint64_t seed, const Dataset& dataset, uint64_t size);

  // The sample at position batch.first + `index`. With one part that is sample_at() of all the
  // data. With more, part p of n is the p-th n-th of the data in an order that the partition gives
  // (with fewer samples than parts, some share one), and has an endless stream of its own:
  //   random  the order is a permutation drawn from the seed; of text, whose windows overlap, as it
  //           stands: part p is then one stretch of the text
  //   label   samples ordered by label, then by place: each part has few labels
  uint64_t at(const Batch& batch, uint32_t index) const;

 private:
  const DataPartition partition_;
  const uint64_t seed_;
  const bool as_it_stands_;
  const uint64_t size_;
  std::vector<uint32_t> by_label_;  // samples in that order; only with kLabel
};

}  // namespace drover

// SampleStream: the order of training samples in a worker's stream.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "core/task_spec.h"
#include "tasks/data/dataset.h"
#include "worker/task.h"

namespace drover {

// Fails if the data does not support the partition; the error proposes another.
Status check_partition(DataPartition partition, const Dataset& dataset);

class SampleStream {
 public:
  // `size`: number of samples (for text: windows) of the training part.
  // REQUIRES: check_partition() succeeds; size >= 1.
  SampleStream(DataPartition partition, uint64_t seed, const Dataset& dataset, uint64_t size);

  // The sample at position batch.first + `index`. With one part this is sample_at() of all data.
  // With n parts, part p is the p-th of n equal ranges of the data in an order given by the
  // partition (with fewer samples than parts, some parts share one), and has its own endless
  // stream:
  //   random  a random permutation; text, whose windows overlap, keeps its order, so that part p is
  //           one stretch of the text
  //   label   ordered by label, then by index, so that each part has few labels
  uint64_t at(const Batch& batch, uint32_t index) const;

 private:
  const DataPartition partition_;
  const uint64_t seed_;
  const bool keeps_order_;
  const uint64_t size_;
  std::vector<uint32_t> by_label_;  // samples ordered by label; only with kLabel
};

}  // namespace drover

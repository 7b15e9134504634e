#include "tasks/data/sample_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/check.h"
#include "core/random_draw.h"

namespace drover {

Status check_partition(DataPartition partition, const Dataset& dataset) {
  if (partition != DataPartition::kLabel || dataset.kind != DataKind::kText) return done();
  return invalid_input(fmt::format(
      "partition: label needs samples with labels, but {} is text; use random, which gives each "
      "worker a stretch of the text",
      dataset.name));
}

SampleStream::SampleStream(DataPartition partition, uint64_t seed, const Dataset& dataset,
                           uint64_t size)
    : partition_(partition),
      seed_(seed),
      keeps_order_(dataset.kind == DataKind::kText),
      size_(size) {
  DROVER_CHECK(size >= 1);
  if (partition != DataPartition::kLabel) return;
  const std::vector<uint32_t>& labels = dataset.train.labels;
  DROVER_CHECK(labels.size() == size);
  by_label_.resize(size);
  std::iota(by_label_.begin(), by_label_.end(), 0u);
  std::sort(by_label_.begin(), by_label_.end(), [&](uint32_t a, uint32_t b) {
    return std::tuple(labels[a], a) < std::tuple(labels[b], b);
  });
}

uint64_t SampleStream::at(const Batch& batch, uint32_t index) const {
  const uint64_t position = batch.first + index;
  if (batch.parts == 1) return sample_at(seed_, size_, position);
  DROVER_CHECK(batch.part < batch.parts);
  const uint64_t begin = size_ * batch.part / batch.parts;
  const uint64_t end = size_ * (batch.part + 1) / batch.parts;
  const uint64_t place =
      begin + sample_at(seed_ + batch.part, std::max<uint64_t>(end - begin, 1), position);
  if (partition_ == DataPartition::kLabel) return by_label_[place];
  if (keeps_order_) return place;
  return Permutation(size_, draw({seed_, static_cast<uint64_t>(Purpose::kPartition)}))(place);
}

}  // namespace drover

#include "worker/sample_share.h"

#include <algorithm>

#include "core/check.h"

namespace drover {

SampleShare::SampleShare(WorkerId worker, uint32_t workers, uint32_t batch, bool own_part)
    : worker_(worker),
      workers_(workers),
      own_part_(own_part),
      shares_{{.from = 0,
               .first = uint64_t{worker} * batch,
               .count = batch,
               .total = uint64_t{workers} * batch}} {
  DROVER_CHECK(worker < workers);
}

void SampleShare::on_share(const Share& share) {
  // The new share replaces shares that would apply from a later step on.
  std::erase_if(shares_, [&](const Share& each) { return each.from >= share.from; });
  shares_.push_back(share);
  if (shares_.size() > kKept) shares_.erase(shares_.begin());
}

Batch SampleShare::batch_of(Step step) const {
  const auto later = std::find_if(shares_.begin(), shares_.end(),
                                  [&](const Share& each) { return each.from > step; });
  const Share& share = later == shares_.begin() ? shares_.front() : *(later - 1);
  // A worker with its own part of the data has its own stream. After a change of its share it may
  // see some samples twice within an epoch.
  if (own_part_)
    return {.first = step * share.count, .count = share.count, .part = worker_, .parts = workers_};
  return {.first = step * share.total + share.first, .count = share.count};
}

}  // namespace drover

// DealtShares: divides a step's samples into consecutive ranges, one for each worker, and returns
// the ranges that have changed and have to be sent.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/ids.h"
#include "wire/control.h"

namespace drover {

class DealtShares {
 public:
  // From step `from` on, members[i] computes samples[i] of `total` samples. Returns the shares that
  // differ from the last one sent to their worker. REQUIRES: members and samples have equal sizes.
  std::vector<std::pair<WorkerId, Share>> deal(Step from, std::span<const WorkerId> members,
                                               std::span<const uint32_t> samples, uint64_t total) {
    DROVER_CHECK(members.size() == samples.size());
    std::vector<std::pair<WorkerId, Share>> changed;
    uint64_t first = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      const Share share{.from = from, .first = first, .count = samples[i], .total = total};
      first += samples[i];
      Share& sent = sent_[members[i]];
      if (sent.first == share.first && sent.count == share.count && sent.total == share.total)
        continue;
      sent = share;
      changed.emplace_back(members[i], share);
    }
    return changed;
  }
  // The worker is lost. Its next incarnation has to be sent its share again.
  void forget(WorkerId worker) { sent_.erase(worker); }

 private:
  std::map<WorkerId, Share> sent_;  // the last share sent to each worker
};

}  // namespace drover

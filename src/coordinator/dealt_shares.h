// DealtShares: cuts a step's samples into consecutive stretches, one for each worker, and says
// which workers have to be told.
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
  // From step `from` on members[i] computes samples[i] of `total`. Returns what differs from what
  // its worker was last told. REQUIRES: members and samples are equally many.
  std::vector<std::pair<WorkerId, Share>> deal(Step from, std::span<const WorkerId> members,
                                               std::span<const uint32_t> samples, uint64_t total) {
    DROVER_CHECK(members.size() == samples.size());
    std::vector<std::pair<WorkerId, Share>> changed;
    uint64_t first = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      const Share share{.from = from, .first = first, .count = samples[i], .total = total};
      first += samples[i];
      Share& told = told_[members[i]];
      if (told.first == share.first && told.count == share.count && told.total == share.total)
        continue;
      told = share;
      changed.emplace_back(members[i], share);
    }
    return changed;
  }
  // The worker is lost: its next incarnation has to be told.
  void forget(WorkerId worker) { told_.erase(worker); }

 private:
  std::map<WorkerId, Share> told_;  // last
};

}  // namespace drover

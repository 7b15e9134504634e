// EarlyPushes: pushes for steps that one block has not reached yet. These occur with partial pulls,
// where a worker may be ahead of a block. Keeps one push for each worker, so that memory is
// bounded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "core/float_buffer.h"
#include "core/ids.h"

namespace drover {

struct EarlyPush {
  WorkerId worker = 0;
  Step step = 0;
  uint32_t samples = 0;
  ConstBuffer payload;  // null: only an offer
};

class EarlyPushes {
 public:
  // The kept push of this worker; null if there is none.
  const EarlyPush* of(WorkerId worker) const {
    const auto found = by_worker_.find(worker);
    return found == by_worker_.end() ? nullptr : &found->second;
  }
  // Replaces the kept push of this worker.
  void keep(EarlyPush push) { by_worker_[push.worker] = std::move(push); }
  void forget(WorkerId worker) { by_worker_.erase(worker); }

  // Removes and returns a push for `step`, that of the lowest worker; nothing if there is none.
  std::optional<EarlyPush> take(Step step) {
    for (auto each = by_worker_.begin(); each != by_worker_.end(); ++each) {
      if (each->second.step == step) return remove(each);
    }
    return std::nullopt;
  }
  // Removes and returns a push for the newest step before `step`, that of the lowest worker.
  std::optional<EarlyPush> take_before(Step step) {
    auto newest = by_worker_.end();
    for (auto each = by_worker_.begin(); each != by_worker_.end(); ++each) {
      if (each->second.step >= step) continue;
      if (newest == by_worker_.end() || each->second.step > newest->second.step) newest = each;
    }
    return newest == by_worker_.end() ? std::nullopt : remove(newest);
  }

  size_t size() const { return by_worker_.size(); }

 private:
  std::optional<EarlyPush> remove(std::map<WorkerId, EarlyPush>::iterator which) {
    std::optional<EarlyPush> push = std::move(which->second);
    by_worker_.erase(which);
    return push;
  }
  std::map<WorkerId, EarlyPush> by_worker_;
};

}  // namespace drover

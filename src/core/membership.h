// Membership: the set of workers, out of 0..n-1, that can contribute now.
#pragma once

#include <span>
#include <vector>

#include "core/check.h"
#include "core/ids.h"

namespace drover {

class Membership {
 public:
  Membership() = default;
  explicit Membership(uint32_t workers) : alive_(workers, true), count_(workers) {}

  uint32_t size() const { return static_cast<uint32_t>(alive_.size()); }
  uint32_t count() const { return count_; }
  bool has(WorkerId worker) const { return worker < alive_.size() && alive_[worker]; }

  // Returns whether the worker was added; false: it was a member already. REQUIRES: worker <
  // size().
  bool add(WorkerId worker) {
    DROVER_CHECK(worker < alive_.size());
    if (alive_[worker]) return false;
    alive_[worker] = true;
    ++count_;
    return true;
  }

  // Returns whether the worker was removed; false: it was no member.
  bool remove(WorkerId worker) {
    if (!has(worker)) return false;
    alive_[worker] = false;
    --count_;
    return true;
  }

  std::vector<WorkerId> list() const {
    std::vector<WorkerId> workers;
    for (WorkerId worker = 0; worker < alive_.size(); ++worker) {
      if (alive_[worker]) workers.push_back(worker);
    }
    return workers;
  }

 private:
  std::vector<bool> alive_;
  uint32_t count_ = 0;
};

}  // namespace drover

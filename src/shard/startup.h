// Startup: where a shard's initial parameters come from, until it has them all.
#pragma once

#include <optional>
#include <set>

#include "core/ids.h"
#include "wire/outbox.h"

namespace drover {

class Startup {
 public:
  // Whether the coordinator knows that this shard has all its parameters.
  bool ready() const { return ready_; }
  // Whether this worker was asked for the initial parameters.
  bool asked(WorkerId worker) const { return source_ == worker; }

  // The worker that was asked is lost: another has to be.
  void on_lost(WorkerId worker) {
    if (asked(worker)) source_.reset();
  }

  // Says that the shard is ready, once it has all parameters; until then asks one worker at a time,
  // the first of those connected. Call after every change of either.
  // `workers`: ids from there on are of no worker.
  void request(bool complete, const std::set<WorkerId>& connected, uint32_t workers, Outbox& out) {
    if (complete) {
      if (!ready_) out.push_back({to_coordinator(), control_frame(Ready{})});
      ready_ = true;
      return;
    }
    if (source_ || connected.empty() || *connected.begin() >= workers) return;
    source_ = *connected.begin();
    out.push_back({to_worker(*source_, Lane::kControl), control_frame(WantInitial{})});
  }

 private:
  std::optional<WorkerId> source_;
  bool ready_ = false;
};

}  // namespace drover

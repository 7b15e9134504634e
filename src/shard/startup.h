// Startup: requests a shard's initial parameters from a worker, until the shard has all of them.
#pragma once

#include <optional>
#include <set>

#include "core/ids.h"
#include "wire/outbox.h"

namespace drover {

class Startup {
 public:
  // Whether this shard has reported to the coordinator that it has all its parameters.
  bool ready() const { return ready_; }
  // Whether this worker was asked for the initial parameters.
  bool asked(WorkerId worker) const { return source_ == worker; }

  // A worker is lost. If it was asked, request() asks another one.
  void on_lost(WorkerId worker) {
    if (asked(worker)) source_.reset();
  }

  // Only worker 0 is asked: several shards must not get values of different workers. Call first.
  void ask_only_the_first() { only_the_first_ = true; }

  // If the parameters are `complete`, reports once that the shard is ready. Otherwise asks the
  // first connected worker for them, one worker at a time. Call after every change of either
  // argument. `workers`: the number of worker indices; higher ids are not workers.
  void request(bool complete, const std::set<WorkerId>& connected, uint32_t workers, Outbox& out) {
    if (complete) {
      if (!ready_) out.push_back({to_coordinator(), control_frame(Ready{})});
      ready_ = true;
      return;
    }
    if (source_ || connected.empty() || *connected.begin() >= workers) return;
    if (only_the_first_ && *connected.begin() != 0) return;
    source_ = *connected.begin();
    out.push_back({to_worker(*source_, Lane::kControl), control_frame(WantInitial{})});
  }

 private:
  std::optional<WorkerId> source_;
  bool ready_ = false;
  bool only_the_first_ = false;
};

}  // namespace drover

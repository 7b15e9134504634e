// Network: computes when a frame that is sent now arrives. Frames of one stream stay in order, as
// on a TCP connection; frames of different streams may overtake each other.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/time.h"
#include "sim/scenario.h"
#include "wire/outbox.h"

namespace drover {

// A process of the run, identified by its role and index.
struct Party {
  Role role = Role::kCoordinator;
  uint32_t index = 0;
  auto operator<=>(const Party&) const = default;
};

class Network {
 public:
  // REQUIRES: the scenario outlives this object.
  Network(const Scenario& scenario, uint64_t seed) : scenario_(scenario), seed_(seed) {}

  // The time at which `bytes` arrive that `from` sends `to` on this lane now, delayed by `extra`.
  TimePoint arrival(TimePoint now, Party from, Party to, Lane lane, size_t bytes, Duration extra);

  // Blocks all frames between these workers and all other processes until then.
  void isolate(const WorkerSelector& selector, TimePoint until) {
    partitions_.push_back({selector, until});
  }

 private:
  struct Isolated {
    WorkerSelector selector;
    TimePoint until{};
  };
  using Stream = std::tuple<Party, Party, Lane>;

  LinkLaw law_between(Party from, Party to) const;
  TimePoint link_free(TimePoint now, Party from, Party to) const;
  bool concerns(const WorkerSelector& selector, Party end) const;

  const Scenario& scenario_;
  const uint64_t seed_;
  uint64_t frames_ = 0;                  // sent so far: keys their random draws
  std::map<Stream, TimePoint> last_;     // last arrival on each stream
  std::map<Party, TimePoint> sends_;     // when its outgoing link is free
  std::map<Party, TimePoint> receives_;  // when its incoming link is free
  std::vector<Isolated> partitions_;
};

}  // namespace drover

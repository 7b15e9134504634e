// Network: when a frame that is sent now arrives. Streams keep their order, as connections do;
// different streams overtake each other.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/time.h"
#include "sim/scenario.h"
#include "wire/outbox.h"

namespace drover {

// A process of the run, wherever it is.
struct Party {
  Role role = Role::kCoordinator;
  uint32_t index = 0;
  auto operator<=>(const Party&) const = default;
};

class Network {
 public:
  // The scenario must outlive this.
  Network(const Scenario& scenario, uint64_t seed) : scenario_(scenario), seed_(seed) {}

  // When `bytes` that `from` sends `to` on this lane now, delayed there by `extra`, have arrived.
  TimePoint arrival(TimePoint now, Party from, Party to, Lane lane, size_t bytes, Duration extra);

  // Nothing passes between these workers and the others until then.
  void isolate(const Whom& whom, TimePoint until) { partitions_.push_back({whom, until}); }

 private:
  struct Isolated {
    Whom whom;
    TimePoint until{};
  };
  using Stream = std::tuple<Party, Party, Lane>;

  LinkLaw law_between(Party from, Party to) const;
  TimePoint way_free(TimePoint now, Party from, Party to) const;
  bool concerns(const Whom& whom, Party end) const;

  const Scenario& scenario_;
  const uint64_t seed_;
  uint64_t frames_ = 0;                  // sent so far: the key of their chances
  std::map<Stream, TimePoint> last_;     // arrival on each stream
  std::map<Party, TimePoint> sends_;     // until when its way out is busy
  std::map<Party, TimePoint> receives_;  // and its way in
  std::vector<Isolated> partitions_;
};

}  // namespace drover

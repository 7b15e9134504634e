// Gathering: how long a run waits, before training begins, for processes that have not joined or
// are not ready.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/time.h"

namespace drover {

class Gathering {
 public:
  // How long a run that restarts waits for the processes that keep its state in memory.
  static constexpr Duration kKeeperPatience = std::chrono::seconds(5);
  // How long shards may read the checkpoint that a run continues from.
  static constexpr Duration kReadingMax = std::chrono::minutes(10);

  struct Settings {
    Duration join_timeout{};
    // The same of workers that return to a run that restarts, since the first is ready.
    std::optional<Duration> return_timeout = {};
    bool reads_checkpoint = false;  // no worker is ready before the shards have read it
  };
  Gathering(const Settings& settings, TimePoint started) : settings_(settings), started_(started) {}

  struct Present {
    bool shards_ready = false;   // all
    bool worker_joined = false;  // any, here and below
    bool worker_ready = false;
  };
  // If those missing are not waited for any longer: how long they were. Call about every second:
  // since when others were there is known from these calls.
  std::optional<Duration> overdue(const Present& present, TimePoint now);

  // Whether the processes that keep the run's state have had their time to join.
  bool keepers_overdue(TimePoint now) const { return now - started_ >= kKeeperPatience; }

 private:
  struct Wait {
    TimePoint since{};
    Duration patience{};
  };
  Wait wait_for(const Present& present) const;

  const Settings settings_;
  const TimePoint started_;
  std::optional<TimePoint> shards_ready_since_;
  std::optional<TimePoint> worker_ready_since_;  // and all shards
};

// The processes that are missing, in words, if a shard is among them: without one a run cannot
// begin. Else empty.
std::string missing_with_shards(const std::vector<ShardId>& shards, uint32_t workers,
                                uint32_t workers_at_start);

}  // namespace drover

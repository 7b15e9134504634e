// Gathering: how long a run waits for processes that have not joined or are not ready, before
// training begins without them.
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
  // How long a restarting run waits for the processes that keep its state in memory.
  static constexpr Duration kKeeperPatience = std::chrono::seconds(5);
  // The longest time that shards may take to read the checkpoint that a run continues from.
  static constexpr Duration kReadingMax = std::chrono::minutes(10);

  struct Settings {
    Duration join_timeout{};
    // After a restart: how long to wait once the first worker is ready. Absent: join_timeout.
    std::optional<Duration> return_timeout = {};
    bool reads_checkpoint = false;  // workers become ready only after shards have read it
  };
  Gathering(const Settings& settings, TimePoint started) : settings_(settings), started_(started) {}

  struct Present {
    bool shards_ready = false;   // all shards
    bool worker_joined = false;  // at least one worker, here and below
    bool worker_ready = false;
  };
  // Returns how long the run has waited, if it is to stop waiting. Call about every second: these
  // calls measure since when shards and workers are ready.
  std::optional<Duration> overdue(const Present& present, TimePoint now);

  // Whether kKeeperPatience is over.
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
  std::optional<TimePoint> worker_ready_since_;  // a worker and all shards
};

// The names of the missing processes, if a shard is among them: a run cannot begin without all
// shards. Empty if no shard is missing.
std::string missing_with_shards(const std::vector<ShardId>& shards, uint32_t workers,
                                uint32_t workers_at_start);

}  // namespace drover

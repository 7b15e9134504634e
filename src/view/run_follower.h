// RunFollower: follows a run file that may still grow, without blocking its writer, and switches to
// another run when the RunChooser selects one.
//
// No database connection is open between polls: a writer that ends can merge the write-ahead log
// (-wal) into its file only without readers.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "view/run_snapshot.h"
#include "view/step_detail.h"

namespace drover {

// The run to follow.
struct WatchedRun {
  std::string file;  // empty: no run has started
  RunPlace place{};
  std::string gone{};  // not empty: why the run has no file and will not have one
  bool operator==(const WatchedRun&) const = default;
};
using RunChooser = std::function<WatchedRun()>;

// Always the same file.
RunChooser only_run(std::string file);

class RunFollower {
 public:
  // Every poll calls `choose`.
  explicit RunFollower(RunChooser choose) : choose_(std::move(choose)) {}

  enum class PollResult {
    kUnchanged,
    kChanged,
    kMoreToRead,  // changed, and there is more data: poll again soon
  };
  // Reads new data if the file has changed, or switches to another run if `choose` selects one.
  // After an error the next call tries again and the old data stays. The data of the old run stays
  // until data of the new one has been read.
  Result<PollResult> poll();

  // Whether any data has been read.
  bool has_run() const { return has_run_; }
  // The data read so far; empty if none has been read.
  const RecordedRun& run() const { return run_; }
  // `wall_clock` is nanoseconds since 1970, as in file modification times. If the last poll failed,
  // the snapshot's warning has the error.
  RunSnapshot snapshot(Duration wall_clock) const;

  // A step of the snapshot's run. Absent if there is no such step (yet).
  Result<std::optional<StepDetail>> step(Step step) const;

 private:
  // Changes with every write to the file or its log.
  struct Stamp {
    ino_t inode = 0;
    off_t size = -1;  // -1: no such file
    Duration written{};
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::array<Stamp, 2>;
  static Stamps stamps_of(const std::string& file);

  const RunChooser choose_;
  WatchedRun watched_;
  RecordedRun run_;
  bool has_run_ = false;
  std::optional<Stamps> read_;  // of the file when it was last read to its end
  std::string trouble_;
};

}  // namespace drover

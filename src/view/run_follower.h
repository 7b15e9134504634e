// RunFollower: keeps up with a run file that may still grow, without being in its writer's way, and
// goes over to another one when it is told to.
//
// Between two looks no connection is open: a writer that ends can make one file of its file and its
// log (-wal) only while nobody reads.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "view/run_snapshot.h"
#include "view/step_detail.h"

namespace drover {

// The run to look at now.
struct WatchedRun {
  std::string file;  // empty: none has begun
  RunPlace place{};
  std::string gone{};  // the file is no more, and will not be: why
  bool operator==(const WatchedRun&) const = default;
};
using RunChooser = std::function<WatchedRun()>;

// Always the same file.
RunChooser only_run(std::string file);

class RunFollower {
 public:
  // `choose` is asked at every look.
  explicit RunFollower(RunChooser choose) : choose_(std::move(choose)) {}

  enum class News {
    kNone,
    kSome,
    kMore,  // some, and there is more: look again soon
  };
  // Reads what is new if the file has changed since, or all of another run if that is the one to
  // look at now. What could not be read is tried again with the next call; what was read before
  // stays, also of the run before until something of the next could be read.
  Result<News> look();

  // Whether anything could be read yet.
  bool knows_the_run() const { return knows_; }
  // What could be read; empty until something could.
  const RecordedRun& run() const { return run_; }
  // `wall_clock` is nanoseconds since 1970, as the file system has them. The snapshot's warning
  // says if the last look failed.
  RunSnapshot snapshot(Duration wall_clock) const;

  // Of the run that the snapshot is of. Nothing: it has no such step (yet).
  Result<std::optional<StepDetail>> step(Step step) const;

 private:
  // Changes whenever somebody writes, for the file and its log.
  struct Stamp {
    ino_t inode = 0;
    off_t size = -1;  // there is no such file
    Duration written{};
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::array<Stamp, 2>;
  static Stamps stamps_of(const std::string& file);

  const RunChooser choose_;
  WatchedRun watched_;
  RecordedRun run_;
  bool knows_ = false;
  std::optional<Stamps> read_;  // what the file was like when it was last read to its end
  std::string trouble_;
};

}  // namespace drover

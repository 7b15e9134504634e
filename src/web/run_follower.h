// RunFollower: keeps up with a run file that may still grow, without being in its writer's way.
//
// Between two looks no connection is open: a writer that ends can make one file of its file and its
// log (-wal) only while nobody reads.
#pragma once

#include <sys/types.h>

#include <array>
#include <optional>
#include <string>

#include "web/run_picture.h"

namespace drover {

class RunFollower {
 public:
  explicit RunFollower(std::string path) : path_(std::move(path)) {}

  enum class News {
    kNone,
    kSome,
    kMore,  // some, and there is more: look again soon
  };
  // Reads what is new if the file has changed since. What could not be read is tried again with the
  // next call; what was read before stays.
  Result<News> look();

  // Whether anything could be read yet.
  bool knows_the_run() const { return knows_; }
  // `wall_clock` is nanoseconds since 1970, as the file system has them. The snapshot's warning
  // says if the last look failed.
  RunSnapshot snapshot(Duration wall_clock) const;

  // Nothing: the run has no such step (yet).
  Result<std::optional<StepDetail>> step(Step step) const;

  const std::string& path() const { return path_; }

 private:
  // Changes whenever somebody writes, for the file and its log.
  struct Stamp {
    ino_t inode = 0;
    off_t size = -1;  // there is no such file
    Duration written{};
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::array<Stamp, 2>;
  Stamps stamps_now() const;

  const std::string path_;
  RunPicture picture_;
  bool knows_ = false;
  std::optional<Stamps> read_;  // what the file was like when it was last read to its end
  std::string trouble_;
};

}  // namespace drover

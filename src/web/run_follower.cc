#include "web/run_follower.h"

#include <sys/stat.h>

#include <algorithm>

namespace drover {

RunFollower::Stamps RunFollower::stamps_now() const {
  Stamps stamps;
  size_t place = 0;
  for (const std::string& path : {path_, path_ + "-wal"}) {
    struct stat status {};
    Stamp& stamp = stamps[place++];
    if (::stat(path.c_str(), &status) != 0) continue;
    stamp = {status.st_ino, status.st_size,
             std::chrono::seconds(status.st_mtim.tv_sec) +
                 std::chrono::nanoseconds(status.st_mtim.tv_nsec)};
  }
  return stamps;
}

Result<RunFollower::News> RunFollower::look() {
  // Before reading: what is written meanwhile is then noticed the next time.
  const Stamps now = stamps_now();
  if (now == read_ && trouble_.empty()) return News::kNone;
  const Result<RunReader> reader = RunReader::open(path_);
  const Result<bool> more = reader ? picture_.read(reader.value()) : reader.error();
  if (!more) {
    trouble_ = more.error().message;
    return more.error();
  }
  trouble_.clear();
  knows_ = true;
  if (more.value()) return News::kMore;
  read_ = now;
  return News::kSome;
}

RunSnapshot RunFollower::snapshot(Duration wall_clock) const {
  const Stamps now = stamps_now();
  RunSnapshot snapshot = picture_.snapshot(wall_clock - std::max(now[0].written, now[1].written));
  if (!trouble_.empty()) snapshot.warning = trouble_;
  return snapshot;
}

Result<std::optional<StepDetail>> RunFollower::step(Step step) const {
  const Result<RunReader> reader = RunReader::open(path_);
  if (!reader) return reader.error();
  return read_step(reader.value(), step);
}

}  // namespace drover

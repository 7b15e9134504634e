#include "view/run_follower.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace drover {

RunChooser only_run(std::string file) {
  return [run = WatchedRun{.file = std::move(file)}] { return run; };
}

RunFollower::Stamps RunFollower::stamps_of(const std::string& file) {
  Stamps stamps;
  size_t place = 0;
  for (const std::string& path : {file, file + "-wal"}) {
    struct stat status {};
    Stamp& stamp = stamps[place++];
    if (::stat(path.c_str(), &status) != 0) continue;
    stamp = {status.st_ino, status.st_size,
             std::chrono::seconds(status.st_mtim.tv_sec) +
                 std::chrono::nanoseconds(status.st_mtim.tv_nsec)};
  }
  return stamps;
}

Result<RunFollower::PollResult> RunFollower::poll() {
  const WatchedRun wanted = choose_();
  if (wanted.file.empty()) return PollResult::kUnchanged;
  if (!wanted.gone.empty()) {
    if (std::exchange(trouble_, wanted.gone) == wanted.gone) return PollResult::kUnchanged;
    return PollResult::kChanged;
  }
  const bool other = wanted.file != watched_.file;
  // Taken before reading, so that the next poll notices data written meanwhile.
  const Stamps now = stamps_of(wanted.file);
  if (wanted == watched_ && now == read_ && trouble_.empty()) return PollResult::kUnchanged;
  RecordedRun begun;
  RecordedRun& run = other ? begun : run_;
  const Result<RunReader> reader = RunReader::open(wanted.file);
  const Result<bool> more = reader ? run.read(reader.value()) : reader.error();
  if (!more) {
    // The file of another run may not exist yet. This is not an error of the run that is shown.
    if (!other) trouble_ = more.error().message;
    return more.error();
  }
  if (other) {
    run_ = std::move(begun);
    read_.reset();
  }
  watched_ = wanted;
  trouble_.clear();
  has_run_ = true;
  if (more.value()) return PollResult::kMoreToRead;
  read_ = now;
  return PollResult::kChanged;
}

RunSnapshot RunFollower::snapshot(Duration wall_clock) const {
  Stamps now = stamps_of(watched_.file);
  if (now == Stamps{} && read_) now = *read_;  // the file was removed
  RunSnapshot snapshot = snapshot_of(run_, wall_clock - std::max(now[0].written, now[1].written));
  snapshot.place = watched_.place;
  if (!trouble_.empty()) snapshot.warning = trouble_;
  return snapshot;
}

Result<std::optional<StepDetail>> RunFollower::step(Step step) const {
  const std::string file = has_run_ ? watched_.file : choose_().file;
  if (file.empty()) return invalid_input("the run has not started yet");
  const Result<RunReader> reader = RunReader::open(file);
  if (!reader) return reader.error();
  return read_step(reader.value(), step);
}

}  // namespace drover

#include "sim/checkpoint_checker.h"

#include <fmt/format.h>

#include <iterator>

namespace drover {

std::string CheckpointChecker::on_checkpoint(Version version) {
  existing_.insert(version);
  if (settings_.every > 0 && (version % settings_.every == 0 || version == settings_.steps))
    return {};
  return fmt::format("there is a checkpoint of step {}, which was not due", version);
}

// From memory a run continues with the step that was open, and from the disk with its newest
// checkpoint. That of the last step does not count: the evaluation of the parameters is missing.
std::string CheckpointChecker::on_restart(const Restart& restart, Step recorded) {
  ++restarts_;
  if (!settings_.recovers) return "a run restarts that does not recover";
  if (restarts_ > settings_.restarts_most)
    return fmt::format("the run restarts for the {}th time", restarts_);
  const auto after = existing_.lower_bound(settings_.steps);
  const Version newest = after == existing_.begin() ? 0 : *std::prev(after);
  const Version open = recorded == settings_.steps ? recorded - 1 : recorded;
  const Version expected = restart.from_memory ? open : newest;
  existing_.erase(existing_.upper_bound(restart.version), existing_.end());
  if (restart.version != expected)
    return fmt::format("the run continues from step {} ({}), but should from {}", restart.version,
                       restart.from_memory ? "in memory" : "a checkpoint", expected);
  if (restart.covered_by_standby && !restart.from_memory)
    return "steps are lost with a shard, though its standby had all of them";
  return {};
}

// While a checkpoint is written the next one is passed over; but never the first, nor the last.
std::string CheckpointChecker::on_run_over(const RunEnd& end) const {
  if (end.cause != EndCause::kCompleted || settings_.every == 0 || settings_.writes_fail) return {};
  if (!existing_.contains(settings_.steps)) return "the last step has no checkpoint";
  if (restarts_ == 0 && settings_.every < settings_.steps && !existing_.contains(settings_.every))
    return fmt::format("step {} has no checkpoint", settings_.every);
  return {};
}

}  // namespace drover

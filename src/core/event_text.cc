#include "core/event_text.h"

#include <array>
#include <cstdio>
#include <cstring>

#include "core/text.h"

namespace drover {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<EventPayload>> kNames = {
    "lost",
    "backed-off",
    "joined",
    "left",
    "exit",
    "refused",
    "outlier",
    "pull",
    "reached",
    "checkpoint",
    "checkpoint-failed",
    "resumed",
    "restart",
    "ended"};

std::string rounded(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string whole_seconds(Duration duration) { return rounded("%.0f s", seconds(duration)); }

std::string_view restart_point_text(RestartPoint point) {
  switch (point) {
    case RestartPoint::kMemory:
      return "the state in its shards' memory";
    case RestartPoint::kCheckpoint:
      return "the newest checkpoint";
    case RestartPoint::kCheckpointIfAny:
      return "the newest checkpoint, or from the beginning if there is none";
    case RestartPoint::kBeginning:
      return "the beginning: no checkpoints are kept";
    case RestartPoint::kBeginningNoneYet:
      return "the beginning: there is no checkpoint yet";
  }
  return "";
}

std::string_view restart_cause_text(event::RestartCause cause) {
  switch (cause) {
    case event::RestartCause::kWorkersLost:
      return "all workers were lost";
    case event::RestartCause::kServerLost:
      return "it was lost";
    case event::RestartCause::kCoordinatorLost:
      return "it was killed";
    case event::RestartCause::kStateLost:
      return "no process has the state that the run was to continue from";
  }
  return "";
}

struct Writer {
  const EventRecord& event;

  std::string operator()(const event::Lost& lost) const {
    const std::string why = loss_text(lost.loss);
    switch (lost.effect) {
      case event::LossEffect::kNone:
        return why;
      case event::LossEffect::kContinues:
        return why + "; the run continues without it";
      case event::LossEffect::kNotStarted:
        return why + "; it had not taken part yet";
      case event::LossEffect::kMayReturn:
        return why + "; the run continues, and it may come back";
      case event::LossEffect::kNoEvaluation:
        return why + "; the run continues without evaluation";
      case event::LossEffect::kUnprotected:
        return why + "; until it is back, losing the shard's other process means a restart from " +
               std::string(restart_point_text(lost.fallback));
    }
    return why;
  }
  std::string operator()(const event::BackedOff& off) const {
    return std::string(off.host ? "its host" : "it") + " was lost " + std::to_string(off.losses) +
           " times in a row soon after joining; readmitting in " + whole_seconds(off.wait);
  }
  std::string operator()(const event::Joined&) const {
    return "contributes from step " + std::to_string(event.step) + " on";
  }
  std::string operator()(const event::Left&) const { return "finished"; }
  std::string operator()(const event::Exited& exited) const {
    return exit_text(exited.exit) + (exited.restarted ? "; restarted" : "");
  }
  std::string operator()(const event::Refused& refused) const {
    return "its gradient has NaN or infinity, first in " + refused.tensor +
           "; the step continues without it";
  }
  std::string operator()(const event::Outlier& outlier) const {
    std::string text = "its gradient norm is " + rounded("%.3g", outlier.ratio) +
                       " times the typical norm, largest in " + outlier.tensor +
                       (outlier.used ? "; clipped" : "; dropped");
    if (outlier.times > 1) text += " (" + with_commas(outlier.times) + " times so far)";
    return text;
  }
  std::string operator()(const event::PullShare& pull) const {
    const std::string known = "; from the last " + std::to_string(pull.pulls) + " pulls";
    if (pull.shards_left_out == 0)
      return "wait for all blocks; expect " + rounded("%.3g s", pull.step_seconds) + " per step" +
             known;
    return "wait for " + rounded("%.3g %%", 100.0 * pull.share) + " of the blocks, without any " +
           std::to_string(pull.shards_left_out) + " of " + std::to_string(pull.shards) +
           " shards; expect " + rounded("%.3g s", pull.step_seconds) + " per step, " +
           rounded("%.3g s", pull.all_seconds) + " for all blocks" + known;
  }
  std::string operator()(const event::Reached& reached) const {
    return "the parameters after step " + std::to_string(reached.version) + " reach " +
           to_text(reached.target) + "; the run ends here";
  }
  std::string operator()(const event::CheckpointKept& kept) const {
    return "wrote the checkpoint of step " + std::to_string(kept.version) + ": " +
           rounded("%.1f MB", static_cast<double>(kept.bytes) / 1e6) + " in " +
           rounded("%.2f s", seconds(kept.took));
  }
  std::string operator()(const event::CheckpointFailed& failed) const {
    return "could not write the checkpoint of step " + std::to_string(failed.version) + ": " +
           failed.detail + "; the run continues";
  }
  std::string operator()(const event::Resumed& resumed) const {
    return "the run continues after step " + std::to_string(resumed.version) + ", from " +
           (resumed.from_memory ? std::string(restart_point_text(RestartPoint::kMemory))
                                : resumed.folder);
  }
  std::string operator()(const event::Restarted& restart) const {
    return std::string(restart_cause_text(restart.cause)) +
           "; all processes join again, and the run continues from " +
           std::string(restart_point_text(restart.from));
  }
  std::string operator()(const event::Ended& ended) const {
    return ended.reason.empty() ? "completed" : ended.reason;
  }
};

}  // namespace

std::string_view name_of(EventKind kind) { return kNames[static_cast<size_t>(kind)]; }

std::optional<EventKind> parse_event_kind(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<EventKind>(i);
  }
  return std::nullopt;
}

std::string event_text(const EventRecord& event) {
  if (!event.recorded_text.empty()) return event.recorded_text;
  return std::visit(Writer{event}, event.payload);
}

std::string event_line(const EventRecord& event) {
  if (!event.peer) return event_text(event);
  return name_of(*event.peer) + (event.kind() == EventKind::kLost ? " was lost: " : ": ") +
         event_text(event);
}

std::string peer_text(const EventRecord& event) {
  return event.peer ? name_of(*event.peer) : std::string();
}

std::string exit_text(const ProcessExit& exit) {
  if (!exit.by_signal) return "exited with status " + std::to_string(exit.number);
  return "killed by signal " + std::to_string(exit.number) + " (" + ::strsignal(exit.number) + ")";
}

std::string loss_text(const Loss& loss) {
  switch (loss.cause) {
    case LossCause::kDisconnected:
    case LossCause::kReported:
      return loss.detail;
    case LossCause::kExited:
      return exit_text(loss.exit);
    case LossCause::kJoinTimeout:
      return "did not join within " + whole_seconds(loss.waited);
    case LossCause::kKilled:
      return "killed";
  }
  return loss.detail;
}

}  // namespace drover

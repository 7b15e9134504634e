// Events of a run as values: what kind each is, and what is known of it.
//
// Code tells events apart by kind and payload, never by text. core/event_text.h turns an event into
// text. Text inside a payload comes from outside: from the operating system, or from a user's
// script.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/ids.h"
#include "core/peer.h"
#include "core/target.h"
#include "core/time.h"

namespace drover {

enum class RunOutcome : uint8_t { kRunning, kCompleted, kInterrupted, kFailed };

// Why a run has ended.
enum class EndCause : uint8_t {
  kUnknown,        // it has not ended, or its file does not say
  kCompleted,      // all steps were done
  kTargetReached,  // an evaluation was as good as the user wanted
  kWorkersLeft,    // all workers had done what they were to do
  kInterrupted,    // by the user
  kDiverged,       // no usable gradient for several steps
  kWorkersLost,    // all of them
  kServerLost,     // a shard, and with it a part of the parameters
  kRankLost,       // a worker of a run that cannot continue without it
  kJoinTimeout,    // processes that are needed did not join, or were not ready, in time
  kLauncherLost,   // the process that had started the run
  kRecordFailed,   // the run file could not be written
  kRestartFailed,  // there was nothing to restart from
};

// How a process ended.
struct ProcessExit {
  bool by_signal = false;
  int number = 0;  // of the signal, or the exit status
  bool operator==(const ProcessExit&) const = default;
};

// Why a peer counts as lost.
enum class LossCause : uint8_t {
  kDisconnected,  // its connection ended
  kReported,      // it said so itself
  kExited,        // its process ended before it had joined
  kJoinTimeout,   // it did not join in time
  kKilled,        // its process was killed; how is not known
};
struct Loss {
  LossCause cause = LossCause::kDisconnected;
  std::string detail = {};  // kDisconnected: the system's words; kReported: the peer's
  ProcessExit exit = {};    // kExited
  Duration waited{};        // kJoinTimeout
  bool operator==(const Loss&) const = default;
};
inline Loss disconnected(std::string detail) {
  return {.cause = LossCause::kDisconnected, .detail = std::move(detail)};
}

// Where a run can continue after a restart.
enum class RestartPoint : uint8_t {
  kMemory,            // what shards and standbys keep in memory: no step is lost
  kCheckpoint,        // the newest checkpoint
  kCheckpointIfAny,   // the newest checkpoint, or the beginning if there is none
  kBeginning,         // no checkpoints are kept
  kBeginningNoneYet,  // no checkpoint has been kept yet
};

// Why a checkpoint, or a shard's part of one, is not kept.
enum class CheckpointFailure : uint8_t {
  kNone,     // it is kept
  kOther,    // see its detail
  kSystem,   // the operating system refused to write it
  kBusy,     // the one before is still being written
  kTimeout,  // it was not written in time
};

namespace event {

// What becomes of the run without a lost peer.
enum class LossEffect : uint8_t {
  kNone,          // another event says it: the run ends or restarts
  kContinues,     // without it
  kNotStarted,    // it had not taken part yet
  kMayReturn,     // the evaluator is started again
  kNoEvaluation,  // the evaluator is not
  kUnprotected,   // the shard has only one process left
};

// A peer was lost.
struct Lost {
  Loss loss = {};
  LossEffect effect = LossEffect::kNone;
  RestartPoint fallback = RestartPoint::kMemory;  // kUnprotected: if the other process is lost, too
  bool operator==(const Lost&) const = default;
};
// A worker was lost so often that it is admitted again only after a pause.
struct BackedOff {
  uint32_t losses = 0;  // in a row
  Duration wait{};
  bool host = false;  // counted by host, not by worker
  bool operator==(const BackedOff&) const = default;
};
// A worker takes part from this step on.
struct Joined {
  bool operator==(const Joined&) const = default;
};
// A worker has done what it was to do.
struct Left {
  bool operator==(const Left&) const = default;
};
// A process that the launcher had started ended.
struct Exited {
  ProcessExit exit = {};
  bool restarted = false;
  bool operator==(const Exited&) const = default;
};
// A worker's gradient had NaN or infinity.
struct Refused {
  std::string tensor = {};  // the first in which it had
  bool operator==(const Refused&) const = default;
};
// The norm of a worker's gradient was too large (--guard).
struct Outlier {
  double ratio = 0.0;       // to the usual norm, in ...
  std::string tensor = {};  // ... the tensor where it was largest
  bool used = false;        // clipped; false: dropped
  uint64_t times = 0;       // steps in which this happened to the worker, so far
  bool operator==(const Outlier&) const = default;
};
// Another share of blocks is waited for (--pull auto).
struct PullShare {
  double share = 1.0;
  uint32_t shards_left_out = 0;  // any so many need not have answered, of ...
  uint32_t shards = 0;
  double step_seconds = 0.0;  // expected with it, and ...
  double all_seconds = 0.0;   // ... if all blocks are waited for
  uint64_t pulls = 0;         // that this is known from
  bool operator==(const PullShare&) const = default;
};
// An evaluation reached the target (stop_at).
struct Reached {
  Version version = 0;
  Target target = {};
  bool operator==(const Reached&) const = default;
};
// A checkpoint was kept.
struct CheckpointKept {
  Version version = 0;
  uint64_t bytes = 0;
  Duration took{};
  bool operator==(const CheckpointKept&) const = default;
};
// A checkpoint could not be kept.
struct CheckpointFailed {
  Version version = 0;
  CheckpointFailure cause = CheckpointFailure::kOther;
  int os_error = 0;         // kSystem: errno
  std::string detail = {};  // what failed, on which file, why
  bool operator==(const CheckpointFailed&) const = default;
};
// Training continues after so many steps.
struct Resumed {
  Version version = 0;
  bool from_memory = false;
  std::string folder = {};  // else the checkpoint
  bool operator==(const Resumed&) const = default;
};
enum class RestartCause : uint8_t {
  kWorkersLost,      // all of them
  kServerLost,       // the event's peer
  kCoordinatorLost,  // the event's peer
  kStateLost,        // no process keeps what the run was to continue from
};
// All processes join again, and the run continues from an earlier step.
struct Restarted {
  RestartCause cause = RestartCause::kWorkersLost;
  RestartPoint from = RestartPoint::kMemory;
  bool operator==(const Restarted&) const = default;
};
// The run ended.
struct Ended {
  RunOutcome outcome = RunOutcome::kRunning;
  EndCause cause = EndCause::kUnknown;
  std::string reason = {};  // empty if completed
  bool operator==(const Ended&) const = default;
};

}  // namespace event

using EventPayload = std::variant<event::Lost, event::BackedOff, event::Joined, event::Left,
                                  event::Exited, event::Refused, event::Outlier, event::PullShare,
                                  event::Reached, event::CheckpointKept, event::CheckpointFailed,
                                  event::Resumed, event::Restarted, event::Ended>;

// In the order of the payloads.
enum class EventKind : uint8_t {
  kLost,
  kBackedOff,
  kJoined,
  kLeft,
  kExited,
  kRefused,
  kOutlier,
  kPullShare,
  kReached,
  kCheckpointKept,
  kCheckpointFailed,
  kResumed,
  kRestarted,
  kEnded,
};
static_assert(std::variant_size_v<EventPayload> == static_cast<size_t>(EventKind::kEnded) + 1);

// A payload of this kind of which nothing is known.
EventPayload empty_payload(EventKind kind);

// A worker lost, a gradient refused, the end of the run: what is worth reporting.
struct EventRecord {
  Duration at{};                  // since the start of the run
  Step step = 0;                  // that was open
  std::optional<Peer> peer = {};  // that it is about
  EventPayload payload = {};
  // Of a run file that has only text: that text. The payload is then of the right kind and empty.
  std::string recorded_text = {};

  EventKind kind() const { return static_cast<EventKind>(payload.index()); }
  // Null if it is of another kind.
  template <typename Payload>
  const Payload* as() const {
    return std::get_if<Payload>(&payload);
  }
  bool operator==(const EventRecord&) const = default;
};

}  // namespace drover

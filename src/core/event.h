// Events of a run: a kind, and a payload for each kind.
//
// Code distinguishes events by kind and payload, never by text. core/event_text.h turns an event
// into text. Text inside a payload comes from outside: from the operating system or from a user's
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
  kUnknown,        // it has not ended, or its file has no cause
  kCompleted,      // all steps are done
  kTargetReached,  // an evaluation reached the target (stop_at)
  kWorkersLeft,    // all workers completed their work and left
  kInterrupted,    // by the user
  kDiverged,       // no usable gradient for several steps
  kWorkersLost,    // all workers were lost
  kServerLost,     // a shard was lost, and with it a part of the parameters
  kRankLost,       // a worker was lost, and the run requires all ranks
  kJoinTimeout,    // required processes did not join, or were not ready, in time
  kLauncherLost,   // the process that started the run ended
  kRecordFailed,   // the run file could not be written
  kRestartFailed,  // there was no state to restart from
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
  kReported,      // it reported that it cannot continue
  kExited,        // its process ended before it joined
  kJoinTimeout,   // it did not join in time
  kKilled,        // its process was killed; the signal is unknown
};
struct Loss {
  LossCause cause = LossCause::kDisconnected;
  std::string detail = {};  // kDisconnected: the system's message; kReported: the peer's
  ProcessExit exit = {};    // kExited
  Duration waited{};        // kJoinTimeout
  bool operator==(const Loss&) const = default;
};
inline Loss disconnected(std::string detail) {
  return {.cause = LossCause::kDisconnected, .detail = std::move(detail)};
}

// Where a run can continue after a restart.
enum class RestartPoint : uint8_t {
  kMemory,            // the state that shards and standbys keep in memory: no step is lost
  kCheckpoint,        // the newest checkpoint
  kCheckpointIfAny,   // the newest checkpoint, or the beginning if there is none
  kBeginning,         // no checkpoints are kept
  kBeginningNoneYet,  // no checkpoint has been kept yet
};

// Why a checkpoint, or a shard's part of one, was not written.
enum class CheckpointFailure : uint8_t {
  kNone,     // it was written
  kOther,    // see the detail
  kSystem,   // a system call failed
  kBusy,     // the previous one is still being written
  kTimeout,  // it was not written in time
};

namespace event {

// What the loss of a peer means for the run.
enum class LossEffect : uint8_t {
  kNone,          // reported by another event: the run ends or restarts
  kContinues,     // the run continues without the peer
  kNotStarted,    // the peer had not taken part yet
  kMayReturn,     // the evaluator is restarted
  kNoEvaluation,  // the evaluator is not restarted
  kUnprotected,   // the shard has only one process left
};

// A peer was lost.
struct Lost {
  Loss loss = {};
  LossEffect effect = LossEffect::kNone;
  RestartPoint fallback = RestartPoint::kMemory;  // kUnprotected: if the other process is lost too
  bool operator==(const Lost&) const = default;
};
// A worker was lost several times in a row and is readmitted only after a pause.
struct BackedOff {
  uint32_t losses = 0;  // in a row
  Duration wait{};
  bool host = false;  // losses are counted per host, not per worker
  bool operator==(const BackedOff&) const = default;
};
// A worker joined the run; it contributes from this step on.
struct Joined {
  bool operator==(const Joined&) const = default;
};
// A worker completed its work and left.
struct Left {
  bool operator==(const Left&) const = default;
};
// A process of the launcher ended.
struct Exited {
  ProcessExit exit = {};
  bool restarted = false;
  bool operator==(const Exited&) const = default;
};
// A worker's gradient had NaN or infinity.
struct Refused {
  std::string tensor = {};  // the first tensor with such a value
  bool operator==(const Refused&) const = default;
};
// The norm of a worker's gradient was too large (--guard).
struct Outlier {
  double ratio = 0.0;       // norm as a multiple of the typical norm, in `tensor`
  std::string tensor = {};  // the tensor with the largest ratio
  bool used = false;        // true: clipped and used; false: dropped
  uint64_t times = 0;       // steps so far in which this happened to the worker
  bool operator==(const Outlier&) const = default;
};
// Workers now wait for another share of the blocks (--pull auto).
struct PullShare {
  double share = 1.0;
  uint32_t shards_left_out = 0;  // number of shards that a pull need not wait for
  uint32_t shards = 0;           // all shards
  double step_seconds = 0.0;     // expected duration of a step with this share
  double all_seconds = 0.0;      // expected duration of a step that waits for all blocks
  uint64_t pulls = 0;            // observed pulls behind the expectation
  bool operator==(const PullShare&) const = default;
};
// An evaluation reached the target (stop_at).
struct Reached {
  Version version = 0;
  Target target = {};
  bool operator==(const Reached&) const = default;
};
// A checkpoint was written.
struct CheckpointKept {
  Version version = 0;
  uint64_t bytes = 0;
  Duration took{};
  bool operator==(const CheckpointKept&) const = default;
};
// A checkpoint could not be written.
struct CheckpointFailed {
  Version version = 0;
  CheckpointFailure cause = CheckpointFailure::kOther;
  int os_error = 0;         // kSystem: errno
  std::string detail = {};  // what failed, on which file, why
  bool operator==(const CheckpointFailed&) const = default;
};
// Training continues from a version.
struct Resumed {
  Version version = 0;
  bool from_memory = false;
  std::string folder = {};  // of the checkpoint; empty with from_memory
  bool operator==(const Resumed&) const = default;
};
enum class RestartCause : uint8_t {
  kWorkersLost,      // all workers were lost
  kServerLost,       // the event's peer was lost
  kCoordinatorLost,  // the event's peer was lost
  kStateLost,        // no process has the state that the run was to continue from
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

// A payload of this kind with default values.
EventPayload empty_payload(EventKind kind);

// An event: a lost worker, a refused gradient, the end of the run.
struct EventRecord {
  Duration at{};                  // since the start of the run
  Step step = 0;                  // the step that was open
  std::optional<Peer> peer = {};  // the peer that the event is about
  EventPayload payload = {};
  // The event's text, from an old run file that has only text. The payload is then empty_payload().
  std::string recorded_text = {};

  EventKind kind() const { return static_cast<EventKind>(payload.index()); }
  // Null if the event is of another kind.
  template <typename Payload>
  const Payload* as() const {
    return std::get_if<Payload>(&payload);
  }
  bool operator==(const EventRecord&) const = default;
};

}  // namespace drover

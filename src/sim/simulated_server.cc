#include "sim/simulated_server.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

namespace drover {

SimulatedServer::SimulatedServer(Party self, KeptParts& kept, size_t window_bytes, EventQueue& time,
                                 SimulatedDisk& disk, Send send,
                                 std::function<void(const Outgoing&)> said)
    : self_(self),
      time_(time),
      disk_(disk),
      send_(std::move(send)),
      said_(std::move(said)),
      machine_(self.role, self.index, kept, window_bytes),
      intake_(self.index, kept) {}

void SimulatedServer::on_plan(const Plan& plan) {
  const auto started = machine_.on_plan(plan);
  if (!started) {
    return send_({{to_coordinator(), control_frame(Farewell{.outcome = RunOutcome::kFailed,
                                                            .reason = started.error().message})}});
  }
  if (started.value()) return;
  time_.plan(time_.now() + disk_.read_time(), [this] {
    if (over_) return;
    const auto saved = disk_.read(machine_.plan(), self_.index);
    if (saved) return machine_.start(saved.value());
    send_({{to_coordinator(), control_frame(Farewell{.outcome = RunOutcome::kFailed,
                                                     .reason = saved.error().message})}});
  });
}

void SimulatedServer::on_release(const Release& release) {
  work([&](Outbox& out) { machine_.shard().on_release(release, time_.now(), out); });
}

Status SimulatedServer::on_length(const RunLength& length) {
  Status may = done();
  work([&](Outbox&) { may = machine_.on_length(length.steps); });
  return may;
}

Status SimulatedServer::on_decision(const Decision& decision) {
  if (const Status sane = machine_.shard().check_decision(decision); !sane) return sane;
  work([&](Outbox& out) { machine_.on_decision(decision, time_.now(), out); });
  return done();
}

void SimulatedServer::on_joined(WorkerId worker) {
  work([&](Outbox& out) { machine_.shard().on_joined(worker, out); });
}

void SimulatedServer::on_lost(WorkerId worker) {
  if (!has_plan()) return;
  work([&](Outbox& out) { machine_.shard().on_lost(worker, time_.now(), out); });
}

Status SimulatedServer::on_frame(WorkerId worker, const FrameHeader& header, ConstBuffer payload) {
  Status status = done();
  work([&](Outbox& out) {
    status = machine_.shard().on_frame(worker, header, std::move(payload), time_.now(), out);
  });
  return status;
}

Status SimulatedServer::on_standby(ShardId theirs) {
  Outbox out;
  Status status = machine_.on_standby(theirs, out);
  send_(std::move(out));
  return status;
}

void SimulatedServer::on_standby_lost() {
  Outbox out;
  machine_.on_standby_lost(out);
  send_(std::move(out));
}

Status SimulatedServer::on_replicated(const Replicated& replicated) {
  Outbox out;
  Status status = machine_.on_replicated(replicated, out);
  send_(std::move(out));
  return status;
}

Status SimulatedServer::on_replica(const Replica& replica) {
  Outbox out;
  Status status = intake_.on_replica(replica, out);
  send_(std::move(out));
  return status;
}

Status SimulatedServer::on_replica_floats(const FrameHeader& header, ConstBuffer floats) {
  Outbox out;
  Status status = intake_.on_floats(header, std::move(floats), out);
  send_(std::move(out));
  return status;
}

// As in a live process, the shard's messages are sent first, then the copies for its standby.
template <typename Work>
void SimulatedServer::work(Work&& machine) {
  Outbox said;
  machine(said);
  send_said(std::move(said));
  Outbox copies;
  std::vector<CheckpointPart> due =
      machine_.has_plan() ? machine_.take_checkpoints(copies) : std::vector<CheckpointPart>();
  for (CheckpointPart& part : due) save(std::move(part));
  send_(std::move(copies));
  plan_wake();
}

void SimulatedServer::send_said(Outbox said) {
  for (Outgoing& message : said) {
    Outbox out;
    if (message.to.role == Role::kCoordinator) {
      said_(message);
      machine_.send_to_coordinator(std::move(message), out);
    } else {
      out.push_back(std::move(message));
    }
    send_(std::move(out));
  }
}

void SimulatedServer::plan_wake() {
  const auto wake = machine_.shard().wake_at();
  if (!wake || wake_ == *wake) return;
  wake_ = *wake;
  time_.plan(std::max(*wake, time_.now()), [this, at = *wake] {
    if (over_ || wake_ != at) return;
    wake_ = TimePoint{};
    if (hangs()) return;  // hang_until() has planned a wake-up after the hang
    work([&](Outbox& out) { machine_.shard().on_time(time_.now(), out); });
  });
}

void SimulatedServer::hang_until(TimePoint until) {
  stalled_until_ = std::max(stalled_until_, until);
  time_.plan(stalled_until_ + Duration(1), [this] {
    if (over_ || hangs() || !has_plan()) return;
    work([&](Outbox& out) { machine_.shard().on_time(time_.now(), out); });
  });
}

// One part is written at a time. A part that is due meanwhile is skipped, unless it is the last
// step's.
void SimulatedServer::save(CheckpointPart part) {
  if (!writing_) return write(std::move(part));
  if (part.version == machine_.plan().steps) {
    waiting_ = std::move(part);
    return;
  }
  send_said(
      {{to_coordinator(), control_frame(CheckpointSaved{.version = part.version,
                                                        .failure = CheckpointFailure::kBusy})}});
}

void SimulatedServer::write(CheckpointPart part) {
  writing_ = true;
  const TimePoint began = time_.now();
  auto held = std::make_shared<CheckpointPart>(std::move(part));
  time_.plan(began + disk_.write_time(), [this, began, held] {
    if (over_) return;
    writing_ = false;
    CheckpointSaved saved{.version = held->version, .took = time_.now() - began};
    if (disk_.next_write_fails()) {
      saved.failure = CheckpointFailure::kSystem;
      saved.os_error = ENOSPC;
      saved.error = "cannot write part " + std::to_string(self_.index);
    } else {
      saved.file = "part-" + std::to_string(self_.index);
      for (const SavedBlock& block : held->blocks) saved.bytes += block.length * sizeof(float);
      disk_.put(std::move(*held));
    }
    send_said({{to_coordinator(), control_frame(std::move(saved))}});
    if (auto next = std::exchange(waiting_, std::nullopt)) write(std::move(*next));
  });
}

}  // namespace drover

// Shard: the process that owns some blocks of the parameters, as a state machine without I/O.
//
// It is told what arrived, from whom and when; it answers with frames to send. It holds no socket,
// clock or thread, so that a live process and a simulated one drive the same code.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/float_buffer.h"
#include "core/time.h"
#include "server/membership.h"
#include "server/offer_queue.h"
#include "server/shard_block.h"
#include "wire/outbox.h"

namespace drover {

class Shard {
 public:
  // Bytes of gradients that may be under way to this shard at once.
  static constexpr size_t kWindowBytes = 1 << 20;

  explicit Shard(ShardId id, size_t window_bytes = kWindowBytes);

  // What to keep and how to learn. Comes once, before any worker.
  void on_plan(const Plan& plan);
  bool has_plan() const { return plan_.has_value(); }

  // A worker, or the evaluator, is connected on both lanes.
  void on_joined(WorkerId worker, Outbox& out);
  void on_lost(WorkerId worker, TimePoint now, Outbox& out);

  // How long to wait in a step; the first one opens step 0.
  void on_decision(const Decision& decision, TimePoint now, Outbox& out);

  // How many floats the payload of a frame from `worker` has, before any memory is given to it. An
  // error means that the peer breaks the protocol; its connection should be closed.
  Result<size_t> payload_floats(WorkerId worker, const FrameHeader& header) const;

  // A whole frame. `payload` has the size told by payload_floats(), or is null if that is 0.
  Status on_frame(WorkerId worker, const FrameHeader& header, SharedBuffer payload, TimePoint now,
                  Outbox& out);

  const Membership& members() const { return members_; }
  // All steps are done.
  bool finished() const;
  BufferPool& pool() { return pool_; }

 private:
  struct Waiting {  // for a block of at least `version`, or for its snapshot of exactly that
    WorkerId worker = 0;
    uint64_t request = 0;  // the puller's own number for it
    Version version = 0;
    bool snapshot = false;
  };
  struct Hosted {
    std::unique_ptr<ShardBlock> block;
    std::vector<Waiting> waiting;
  };
  // How far each worker is in one step.
  struct Progress {
    std::vector<uint32_t> blocks;    // answered in time, by worker
    std::vector<uint32_t> late;      // too late for their block, though the step is still open
    std::vector<Duration> run_time;  // of the last one
    std::vector<StepClosed::Refused> refused;
    uint64_t samples_min = ~uint64_t{0};  // behind the update of the least served block
  };

  Hosted* find(BlockId id);
  const Hosted* find(BlockId id) const;
  Progress& progress_of(Step step);
  uint32_t cutoff_of(Step step) const;
  Duration since_opening(Step step, TimePoint now) const;

  void on_offer(WorkerId worker, const FrameHeader& header, SharedBuffer payload, TimePoint now,
                Outbox& out);
  void on_block(WorkerId worker, const FrameHeader& header, SharedBuffer payload, TimePoint now,
                Outbox& out);
  void on_pull(WorkerId worker, const FrameHeader& header, Outbox& out);
  void note_late(WorkerId worker, Step step, TimePoint now);
  void answer(WorkerId worker, Step step, const Hosted& hosted, Answer answer, Outbox& out) const;
  void grant_offers(Outbox& out);
  void request_initial(Outbox& out);
  void close_if_complete(Hosted& hosted, TimePoint now, Outbox& out);
  void close_step_if_done(TimePoint now, Outbox& out);
  // Sends what waits for this block and can be had; returns whether `waiting` was served (or never
  // can be).
  bool serve(const Hosted& hosted, const Waiting& waiting, Outbox& out) const;
  void serve_waiting(Hosted& hosted, Outbox& out) const;
  uint64_t digest() const;

  const ShardId id_;
  BufferPool pool_;
  OfferQueue offers_;
  std::optional<Plan> plan_;
  std::map<BlockId, Hosted> blocks_;
  Membership members_;
  std::set<WorkerId> connected_;
  std::optional<WorkerId> initial_source_;  // who was asked for the initial parameters
  bool announced_ready_ = false;

  bool open_ = false;  // step 0 has begun
  Step step_ = 0;      // the least step that some block is still collecting for
  std::optional<Decision> decision_;
  std::map<Step, TimePoint> opened_;  // of the recent past, to tell how late the late are
  std::map<Step, Progress> progress_;
  std::map<std::pair<Step, WorkerId>, uint32_t> straggling_;  // blocks seen of gradients not whole
  std::map<std::pair<Step, WorkerId>, Duration> late_;        // whole since the last StepClosed
};

}  // namespace drover

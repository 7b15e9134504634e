// Shard: the process that owns some blocks of the parameters, as a state machine without I/O.
//
// It is told what arrived, from whom and when; it answers with frames to send. It holds no socket,
// clock or thread, so that a live process and a simulated one drive the same code.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/checkpoint_part.h"
#include "core/float_buffer.h"
#include "core/time.h"
#include "server/free_clocks.h"
#include "server/membership.h"
#include "server/offer_queue.h"
#include "server/shard_block.h"
#include "wire/outbox.h"

namespace drover {

class Shard {
 public:
  // Bytes of gradients that may be under way to this shard at once.
  static constexpr size_t kWindowBytes = 1 << 20;

  // Parameters are published in buffers that `published` makes, if it is given.
  explicit Shard(ShardId id, size_t window_bytes = kWindowBytes,
                 BufferPool::Make published = nullptr);

  // What to keep and how to learn. Comes once, before any worker.
  void on_plan(const Plan& plan);
  bool has_plan() const { return plan_.has_value(); }

  // The run goes on from a checkpoint: what it has of this shard's blocks, one for each, in any
  // order. Comes after the plan, which names the version, and before any worker.
  void restore(const std::vector<SavedBlock>& saved);

  // A worker, or the evaluator, is connected on both lanes; for the first time, or again after it
  // was lost. It contributes from the decision on that names it.
  void on_joined(WorkerId worker, Outbox& out);
  void on_lost(WorkerId worker, TimePoint now, Outbox& out);

  // An error means that the coordinator breaks the protocol: this shard has not all its parameters,
  // it is no step that could be decided now, or there is nobody to wait for. REQUIRES: has_plan().
  Status check_decision(const Decision& decision) const;
  // How long to wait in a step; the first one opens step 0. REQUIRES: check_decision() took it.
  void on_decision(const Decision& decision, TimePoint now, Outbox& out);

  // When on_time() should be called, if nothing else happens before: a time limit ends then. May
  // change with every call of the others.
  std::optional<TimePoint> wake_at() const;
  void on_time(TimePoint now, Outbox& out);

  // A version that the plan wants kept (a checkpoint is due, or there is a standby), all blocks as
  // they were: the next such, oldest first, since the last call. Look after every call of the
  // others.
  std::optional<CheckpointPart> take_checkpoint();

  // How many floats the payload of a frame from `worker` has, before any memory is given to it. An
  // error means that the peer breaks the protocol; its connection should be closed.
  Result<size_t> payload_floats(WorkerId worker, const FrameHeader& header) const;

  // A block of this shard. REQUIRES: payload_floats() took a frame for it.
  const Block& block(BlockId id) const { return find(id)->block->block(); }

  // A whole frame. `payload` has the size told by payload_floats(), or is null if that is 0.
  Status on_frame(WorkerId worker, const FrameHeader& header, ConstBuffer payload, TimePoint now,
                  Outbox& out);

  // The learning rate from step `told.from` on, in place of the schedule's. Of workers that do not
  // agree about a step the one with the least number is believed. REQUIRES: has_plan().
  Status on_rate(WorkerId worker, const LearningRate& told);

  // Bytes of gradients that may be under way to this shard from now on.
  void set_window(size_t bytes) { offers_.set_window(bytes); }

  // Whether the run has such a worker, be it a member now or not. REQUIRES: has_plan().
  bool knows(WorkerId worker) const { return worker < members_.size(); }
  // How much is kept for later, in entries.
  size_t pending() const;
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
  // A push for a step that its block has not reached: the worker went on without it.
  struct Early {
    Step step = 0;
    uint32_t samples = 0;
    ConstBuffer payload;  // null: only an offer
  };
  struct Hosted {
    std::unique_ptr<ShardBlock> block;
    std::vector<Waiting> waiting;
    std::vector<TimePoint> contributed_at;  // of block->sum().workers(), in that order
    std::map<WorkerId, Early> early;        // the last of each
    std::map<WorkerId, Version> sent;       // where blocks may be behind: the newest to each
  };
  // How far each worker is in one step.
  struct Progress {
    std::vector<uint32_t> blocks;    // answered in time, by worker
    std::vector<uint32_t> late;      // too late for their block, though the step is still open
    std::vector<Duration> run_time;  // of the last one
    std::vector<StepClosed::Refused> refused;
    std::map<WorkerId, StepClosed::Outlier> outliers;
    uint64_t samples_min = ~uint64_t{0};    // behind the update of the least served block
    uint32_t gradients_min = ~uint32_t{0};  // the same of a round, where workers run freely
    NoiseEstimate noise;                    // over the blocks that have closed
    Duration undecided{};                   // see note_undecided()
    std::map<uint32_t, uint32_t> counts;    // of blocks, by how many gradients they got
  };

  Hosted* find(BlockId id);
  const Hosted* find(BlockId id) const;
  Progress& progress_of(Step step);
  // The decision about a step, if it is known.
  const Decision* decision_about(Step step) const;
  bool may_close(const Hosted& hosted, TimePoint now) const;
  std::optional<TimePoint> deadline() const;
  bool enough_at_deadline(const ShardBlock& block) const;
  std::optional<TimePoint> enough_since(const Hosted& hosted, Duration grace) const;
  void note_undecided(TimePoint now);
  void close_complete(TimePoint now, Outbox& out);
  Duration since_opening(Step step, TimePoint now) const;
  // The learning rate of an update with so many samples behind it.
  double rate_of(Step step, uint64_t samples) const;

  void on_members_changed(TimePoint now, Outbox& out);
  bool update_members(const std::vector<WorkerId>& alive);
  Answer judge(const ShardBlock& block, Step step, WorkerId worker) const;
  Status on_offer(WorkerId worker, const FrameHeader& header, ConstBuffer payload, TimePoint now,
                  Outbox& out);
  void on_block(WorkerId worker, const FrameHeader& header, ConstBuffer payload, TimePoint now,
                Outbox& out);
  void on_free_block(WorkerId worker, const FrameHeader& header, ConstBuffer payload, TimePoint now,
                     Outbox& out);
  void on_pull(WorkerId worker, const FrameHeader& header, TimePoint now, Outbox& out);
  void on_owes_nothing(WorkerId worker, Version version, TimePoint now, Outbox& out);
  void excuse(WorkerId worker, TimePoint now, Outbox& out);
  // --- where workers go on without some blocks (shard_weak.cc)
  bool is_early(const FrameHeader& header) const;
  void keep_early(WorkerId worker, const FrameHeader& header, ConstBuffer payload, Outbox& out);
  void drop_early(Hosted& hosted, WorkerId worker, const Early& early, Outbox& out);
  void take_early(Hosted& hosted, TimePoint now, Outbox& out);
  bool serve_newest(Hosted& hosted, const Waiting& waiting, Outbox& out);
  void note_outlier(WorkerId worker, Step step, const ShardBlock& block, Answer answer);
  void note_late(WorkerId worker, Step step, TimePoint now);
  void note_arrival(WorkerId worker, Outbox& out);
  void tell_news(Outbox& out);
  void forget_late(WorkerId worker);
  void answer(WorkerId worker, Step step, const Hosted& hosted, Answer answer, Outbox& out) const;
  void grant_offers(Outbox& out);
  void request_initial(Outbox& out);
  void close_if_complete(Hosted& hosted, TimePoint now, Outbox& out);
  void close(Hosted& hosted, TimePoint now, Outbox& out);
  void close_step_if_done(TimePoint now, Outbox& out);
  std::vector<StepClosed::Arrival> take_arrivals(const Progress& progress);
  void note_stragglers(const Progress& progress, StepClosed& closed);
  // Sends what waits for this block and can be had; returns whether `waiting` was served (or never
  // can be).
  bool serve(Hosted& hosted, const Waiting& waiting, TimePoint now, Outbox& out);
  bool may_have(const ShardBlock& block, const Waiting& waiting) const;
  static bool serve_snapshot(const ShardBlock& block, const Waiting& waiting, Outbox& out);
  static void send_parameters(const ShardBlock& block, const Waiting& waiting, Version version,
                              ConstBuffer values, Outbox& out);
  void serve_waiting(Hosted& hosted, TimePoint now, Outbox& out);
  void serve_all_waiting(TimePoint now, Outbox& out);
  void gather_checkpoint();
  uint64_t digest() const;

  const ShardId id_;
  BufferPool pool_;
  BufferPool published_;
  OfferQueue offers_;
  std::optional<Plan> plan_;
  std::map<BlockId, Hosted> blocks_;
  Membership members_;
  std::set<WorkerId> connected_;
  std::vector<Step> least_push_;  // by worker: the least step it may still push for
  // Where blocks may be behind, by worker: blocks sent to it, and those that it says have come.
  struct Sent {
    uint32_t blocks = 0;
    uint32_t came = 0;
  };
  std::vector<Sent> sent_;
  std::optional<FreeClocks> clocks_;  // where workers run freely
  // That workers have told, by the step that each is in force from.
  struct Rate {
    WorkerId worker = 0;
    double rate = 0.0;
  };
  std::map<Step, Rate> rates_;
  std::optional<WorkerId> initial_source_;  // who was asked for the initial parameters
  bool announced_ready_ = false;

  bool open_ = false;                   // step 0 has begun
  Step step_ = 0;                       // the least step that some block is still collecting for
  std::optional<Decision> decision_;    // the last
  std::map<Step, Decision> decisions_;  // where blocks may be behind: of open steps
  std::map<Step, TimePoint> opened_;    // of the recent past, to tell how late the late are
  std::map<Step, Progress> progress_;
  std::map<std::pair<Step, WorkerId>, uint32_t> straggling_;  // blocks seen of gradients not whole
  std::vector<StepClosed::Arrival> news_;                     // of the open step, not told yet
  std::map<std::pair<Step, WorkerId>, Duration> late_;        // whole since the last StepClosed
  std::deque<CheckpointPart> checkpoints_;                    // not taken yet
};

}  // namespace drover

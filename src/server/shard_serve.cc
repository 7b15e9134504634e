// What a shard gives out: parameters for the next gradient, snapshots for the evaluator.
#include <utility>

#include "server/shard.h"

namespace drover {

void Shard::on_pull(WorkerId worker, const FrameHeader& header, TimePoint now, Outbox& out) {
  const Waiting request{worker, header.step, header.version, (header.flags & kSnapshotFlag) != 0};
  const bool trains = knows(worker) && !request.snapshot;
  if (trains && clocks_) clocks_->place(worker, step_);
  if (trains) sent_[worker].came = header.place;
  for (auto& [id, hosted] : blocks_) {
    // One pull of each kind at a time: a newer one replaces what is left of an older one.
    std::erase_if(hosted.waiting, [&](const Waiting& waiting) {
      return waiting.worker == worker && waiting.snapshot == request.snapshot;
    });
    if (!serve(hosted, request, now, out)) hosted.waiting.push_back(request);
  }
  if (trains && (header.flags & kOwingFlag) == 0) on_owes_nothing(worker, header.version, now, out);
}

void Shard::on_owes_nothing(WorkerId worker, Version version, TimePoint now, Outbox& out) {
  if (!knows(worker) || clocks_) return;
  least_push_[worker] = version;
  excuse(worker, now, out);
}

// Who asks for version v has offered all that it ever will for the steps before. Waiting for more
// could be for ever: where another shard closed a step without that worker, it passes that step
// over, and begins the next only when this shard has closed it too.
void Shard::excuse(WorkerId worker, TimePoint now, Outbox& out) {
  for (auto& [id, hosted] : blocks_) {
    if (hosted.block->version() >= least_push_[worker]) continue;
    hosted.block->excuse(worker, members_);
    close_if_complete(hosted, now, out);
  }
}

bool Shard::serve(Hosted& hosted, const Waiting& waiting, TimePoint now, Outbox& out) {
  const ShardBlock& block = *hosted.block;
  if (!open_) return false;
  if (waiting.snapshot) return serve_snapshot(block, waiting, out);
  if (plan_->weak && knows(waiting.worker)) return serve_newest(hosted, waiting, out);
  if (!may_have(block, waiting)) return false;
  if (clocks_ && knows(waiting.worker)) clocks_->on_served(waiting.worker, now);
  send_parameters(block, waiting, block.version(), block.parameters(), out);
  return true;
}

bool Shard::may_have(const ShardBlock& block, const Waiting& waiting) const {
  if (!block.started()) return false;
  if (!clocks_ || !knows(waiting.worker)) return block.version() >= waiting.version;
  // What a worker gets always has its own gradients in it.
  return block.has_all_before(waiting.version, waiting.worker) &&
         clocks_->may_begin(waiting.version);
}

bool Shard::serve_snapshot(const ShardBlock& block, const Waiting& waiting, Outbox& out) {
  if (block.version() < waiting.version) return false;
  if (ConstBuffer values = block.snapshot(waiting.version)) {
    send_parameters(block, waiting, waiting.version, std::move(values), out);
    return true;
  }
  const FrameHeader gone{.type = FrameType::kGone,
                         .step = waiting.request,
                         .version = block.newest_snapshot(),
                         .block = block.block().id};
  out.push_back({to_worker(waiting.worker, Lane::kControl), Frame{gone, {}}});
  return true;
}

void Shard::send_parameters(const ShardBlock& block, const Waiting& waiting, Version version,
                            ConstBuffer values, Outbox& out) {
  const FrameHeader header{.type = FrameType::kParameters,
                           .flags = static_cast<uint16_t>(waiting.snapshot ? kSnapshotFlag : 0),
                           .step = waiting.request,
                           .version = version,
                           .block = block.block().id};
  out.push_back({to_worker(waiting.worker, Lane::kBulk),
                 Frame{header, FloatSlice{std::move(values), 0, block.block().length}}});
}

void Shard::serve_waiting(Hosted& hosted, TimePoint now, Outbox& out) {
  std::erase_if(hosted.waiting,
                [&](const Waiting& waiting) { return serve(hosted, waiting, now, out); });
}

void Shard::serve_all_waiting(TimePoint now, Outbox& out) {
  for (auto& [id, hosted] : blocks_) serve_waiting(hosted, now, out);
}

}  // namespace drover

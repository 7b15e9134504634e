// What a shard does where workers go on without some blocks: a worker may be ahead of a block, and
// is sent the newest there is instead of nothing.
#include <utility>

#include "server/shard.h"

namespace drover {

bool Shard::is_early(const FrameHeader& header) const {
  return plan_->weak && header.step != kInitialStep &&
         header.step > find(header.block)->block->version();
}

// One of each worker is enough: who pushes again has gone on, and that step will be over before it
// has begun here.
void Shard::keep_early(WorkerId worker, const FrameHeader& header, ConstBuffer payload,
                       Outbox& out) {
  Hosted& hosted = *find(header.block);
  const auto kept = hosted.early.find(worker);
  const bool older = kept != hosted.early.end() && header.step < kept->second.step;
  if (header.step >= plan_->steps || !members_.has(worker) || older)
    return drop_early(hosted, worker, {.step = header.step}, out);
  if (kept != hosted.early.end()) {
    if (header.step == kept->second.step)
      return answer(worker, header.step, hosted, Answer::kDuplicate, out);
    drop_early(hosted, worker, kept->second, out);
  }
  hosted.early[worker] = {header.step, header.samples, std::move(payload)};
}

// It has come, but will not be used: late, before its step has opened.
void Shard::drop_early(Hosted& hosted, WorkerId worker, const Early& early, Outbox& out) {
  if (early.step < plan_->steps) ++progress_of(early.step).late[worker];
  answer(worker, early.step, hosted, Answer::kLate, out);
}

// The block has reached another step: what was pushed for it counts as if it came now. What that
// brings may close the step, and then the rest of it is late.
void Shard::take_early(Hosted& hosted, TimePoint now, Outbox& out) {
  const Step step = hosted.block->version();
  std::vector<std::pair<WorkerId, Early>> due;
  for (auto each = hosted.early.begin(); each != hosted.early.end();) {
    if (each->second.step > step) {
      ++each;
      continue;
    }
    due.emplace_back(each->first, std::move(each->second));
    each = hosted.early.erase(each);
  }
  for (auto& [worker, early] : due) {
    const FrameHeader header{.type = FrameType::kOffer,
                             .step = early.step,
                             .worker = worker,
                             .block = hosted.block->block().id,
                             .samples = early.samples};
    // Whoever has offered too much already is answered, and shut out with its next offer.
    if (!on_offer(worker, header, std::move(early.payload), now, out))
      answer(worker, early.step, hosted, Answer::kLate, out);
  }
}

// Where a pull waited for its version alone, a shard that is always a step behind would never
// answer: so a pull brings whatever is newer than what was sent before, and waits on until it has
// brought what was wanted. Somebody whose connection is slow is not sent more and more: two rounds
// may be under way, and the next pull, which tells what has come, fetches the newest.
bool Shard::serve_newest(Hosted& hosted, const Waiting& waiting, Outbox& out) {
  const ShardBlock& block = *hosted.block;
  if (!block.started()) return false;
  const auto before = hosted.sent.find(waiting.worker);
  if (before != hosted.sent.end() && before->second >= waiting.version) return true;
  if (before != hosted.sent.end() && before->second == block.version()) return false;
  Sent& sent = sent_[waiting.worker];
  if (sent.blocks - sent.came >= 2 * blocks_.size()) return false;
  ++sent.blocks;
  hosted.sent[waiting.worker] = block.version();
  send_parameters(block, waiting, block.version(), block.parameters(), out);
  return block.version() >= waiting.version;
}

}  // namespace drover

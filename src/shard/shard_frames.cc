#include "shard/shard_frames.h"

#include <utility>

namespace drover {

Outgoing answer_frame(WorkerId worker, Step step, const ShardBlock& block, Answer answer) {
  return {to_worker(worker, Lane::kControl), Frame{{.type = FrameType::kAnswer,
                                                    .step = step,
                                                    .version = block.version(),
                                                    .worker = worker,
                                                    .block = block.block().id,
                                                    .answer = answer},
                                                   {}}};
}

Outgoing grant_frame(const Offer& offer) {
  return {to_worker(offer.worker, Lane::kControl), Frame{{.type = FrameType::kGrant,
                                                          .step = offer.step,
                                                          .worker = offer.worker,
                                                          .block = offer.block},
                                                         {}}};
}

Outgoing parameters_frame(const ShardBlock& block, const Pull& pull, Version version,
                          ConstBuffer values) {
  const FrameHeader header{.type = FrameType::kParameters,
                           .flags = static_cast<uint16_t>(pull.snapshot ? kSnapshotFlag : 0),
                           .step = pull.request,
                           .version = version,
                           .block = block.block().id};
  return {to_worker(pull.worker, Lane::kBulk),
          Frame{header, FloatSlice{std::move(values), 0, block.block().length}}};
}

Outgoing gone_frame(const ShardBlock& block, const Pull& pull) {
  const FrameHeader header{.type = FrameType::kGone,
                           .step = pull.request,
                           .version = block.newest_snapshot(),
                           .block = block.block().id};
  return {to_worker(pull.worker, Lane::kControl), Frame{header, {}}};
}

}  // namespace drover

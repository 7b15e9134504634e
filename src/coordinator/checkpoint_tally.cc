#include "coordinator/checkpoint_tally.h"

#include <algorithm>

namespace drover {

bool CheckpointTally::has(Version version) const { return is_checkpoint(version, every_, steps_); }

CheckpointTally::Saved CheckpointTally::on_saved(ShardId shard, const CheckpointSaved& saved,
                                                 size_t shards) {
  Saved answer;
  if (saved.failure != CheckpointFailure::kNone) {
    answer.failure = fail({.version = saved.version,
                           .cause = saved.failure,
                           .os_error = saved.os_error,
                           .detail = saved.error});
  }
  auto& parts = parts_[saved.version];
  parts[shard] = saved;
  answer.all = parts.size() >= shards;
  if (!answer.all) return answer;
  const auto complete = parts_.extract(saved.version);
  if (std::any_of(complete.mapped().begin(), complete.mapped().end(),
                  [](const auto& part) { return part.second.failure != CheckpointFailure::kNone; }))
    return answer;
  uint64_t& bytes = bytes_[saved.version];
  for (const auto& [from, part] : complete.mapped()) {
    bytes += part.bytes;
    answer.parts.push_back(part);
  }
  return answer;
}

std::optional<EventPayload> CheckpointTally::on_kept(Version version, const Status& kept,
                                                     Duration took) {
  const auto bytes = bytes_.extract(version);
  if (!kept) {
    const Error& why = kept.error();
    return fail(
        {.version = version,
         .cause = why.os_error != 0 ? CheckpointFailure::kSystem : CheckpointFailure::kOther,
         .os_error = why.os_error,
         .detail = why.message});
  }
  reported_.clear();
  any_kept_ = true;
  last_is_over_ = last_is_over_ || version == steps_;
  return event::CheckpointKept{
      .version = version, .bytes = bytes.empty() ? 0 : bytes.mapped(), .took = took};
}

std::optional<EventPayload> CheckpointTally::give_up_last() {
  return fail({.version = steps_,
               .cause = CheckpointFailure::kTimeout,
               .detail = "the manifest was not written in time"});
}

std::optional<event::CheckpointFailed> CheckpointTally::fail(event::CheckpointFailed failure) {
  last_is_over_ = last_is_over_ || failure.version == steps_;
  if (!reported_.insert({failure.cause, failure.os_error}).second) return std::nullopt;
  return failure;
}

}  // namespace drover

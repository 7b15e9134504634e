// The coordinator's part in checkpoints: shards save theirs by themselves, here they are counted.
#include <algorithm>
#include <array>
#include <cstdio>

#include "server/coordinator.h"

namespace drover {
namespace {

std::string amount(uint64_t bytes, Duration took) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f MB in %.2f s", static_cast<double>(bytes) / 1e6,
                seconds(took));
  return text.data();
}

}  // namespace

Status Coordinator::on_checkpoint_saved(ShardId shard, const CheckpointSaved& saved, TimePoint now,
                                        CoordinatorOutput& out) {
  if (!is_checkpoint(saved.version, settings_.checkpoint_every, settings_.steps) || !ledger_ ||
      saved.version > std::min<Step>(settings_.steps, step_ + kEarlyMax) ||
      !blocks_on_.contains(shard)) {
    return invalid_input("shard " + std::to_string(shard) + " saved a checkpoint of step " +
                         std::to_string(saved.version) + ", which was not wanted");
  }
  auto& parts = checkpoints_[saved.version];
  parts[shard] = saved;
  const std::string peer = peer_name(Role::kShard, shard);
  if (!saved.error.empty()) {
    fail_checkpoint(saved.version, peer, saved.error, now, out);
  }
  if (parts.size() < blocks_on_.size()) return done();
  const auto whole = checkpoints_.extract(saved.version);
  const auto fine = [](const auto& part) { return part.second.error.empty(); };
  if (std::all_of(whole.mapped().begin(), whole.mapped().end(), fine)) {
    CheckpointReady ready{.version = saved.version,
                          .parts = {},
                          .settings = texts_of(learning_.rules.optimizer),
                          .noise = ledger_->noise(),
                          .tensors = layout_->tensors()};
    ready.settings.merge(texts_of(learning_.rules.schedule));
    uint64_t& bytes = checkpoint_bytes_[saved.version];
    for (const auto& [from, part] : whole.mapped()) {
      bytes += part.bytes;
      ready.parts.push_back(part);
    }
    out.checkpoints.push_back(std::move(ready));
  }
  end_if_complete(now, out);
  return done();
}

void Coordinator::on_checkpoint_kept(Version version, const Status& kept, Duration took,
                                     TimePoint now, CoordinatorOutput& out) {
  const auto bytes = checkpoint_bytes_.extract(version);
  if (phase_ == Phase::kEnded) return;
  if (!kept) {
    fail_checkpoint(version, "", kept.error().message, now, out);
  } else {
    told_failures_.clear();
    checkpoint_there_ = true;
    say("checkpoint", "",
        "the checkpoint of step " + std::to_string(version) +
            " is kept: " + amount(bytes.empty() ? 0 : bytes.mapped(), took),
        now, out);
    last_checkpoint_over_ = last_checkpoint_over_ || version == settings_.steps;
  }
  end_if_complete(now, out);
}

// The run goes on, and the next one is tried. What fails for the same reason again is not told
// again.
void Coordinator::fail_checkpoint(Version version, const std::string& peer, const std::string& why,
                                  TimePoint now, CoordinatorOutput& out) {
  last_checkpoint_over_ = last_checkpoint_over_ || version == settings_.steps;
  // Names of files tell steps and shards apart, but not reasons.
  const size_t colon = why.rfind(": ");
  if (!told_failures_.insert(why.substr(colon == std::string::npos ? 0 : colon)).second) return;
  say("checkpoint-failed", peer,
      "the checkpoint of step " + std::to_string(version) + " is not kept: " + why +
          "; the run goes on",
      now, out);
}

bool Coordinator::await_checkpoint() const {
  return settings_.checkpoint_every > 0 && !last_checkpoint_over_;
}

}  // namespace drover

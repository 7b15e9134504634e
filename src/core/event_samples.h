// For tests only: events to record.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/event.h"

namespace drover {

// A peer whose connection ended.
inline EventRecord lost_event(Duration at, Step step, Peer peer, std::string detail) {
  return {.at = at,
          .step = step,
          .peer = peer,
          .payload = event::Lost{.loss = disconnected(std::move(detail))}};
}

// An event of every kind, with every field set.
inline std::vector<EventRecord> sample_events() {
  const Peer worker{Role::kWorker, 3};
  const std::vector<std::pair<std::optional<Peer>, EventPayload>> all = {
      {worker, event::Lost{.loss = disconnected("connection reset by peer"),
                           .effect = event::LossEffect::kContinues}},
      {worker,
       event::Lost{.loss = {.cause = LossCause::kReported, .detail = "ValueError: no colour"},
                   .effect = event::LossEffect::kNotStarted}},
      {worker,
       event::Lost{.loss = {.cause = LossCause::kExited, .exit = {.by_signal = true, .number = 9}},
                   .effect = event::LossEffect::kNotStarted}},
      {Peer{Role::kEvaluator, 0},
       event::Lost{.loss = {.cause = LossCause::kJoinTimeout, .waited = std::chrono::seconds(60)},
                   .effect = event::LossEffect::kNoEvaluation}},
      {Peer{Role::kEvaluator, 0},
       event::Lost{.loss = disconnected("closed"), .effect = event::LossEffect::kMayReturn}},
      {Peer{Role::kStandby, 1}, event::Lost{.loss = disconnected("closed"),
                                            .effect = event::LossEffect::kUnprotected,
                                            .fallback = RestartPoint::kBeginningNoneYet}},
      {Peer{Role::kCoordinator, 0}, event::Lost{.loss = {.cause = LossCause::kKilled}}},
      {worker, event::BackedOff{.losses = 4, .wait = std::chrono::seconds(40), .host = true}},
      {worker, event::Joined{}},
      {worker, event::Left{}},
      {worker, event::Exited{.exit = {.by_signal = true, .number = 9}, .restarted = true}},
      {worker, event::Exited{.exit = {.by_signal = false, .number = 77}}},
      {worker, event::Refused{.tensor = "conv1.weight"}},
      {worker, event::Outlier{.ratio = 812.5, .tensor = "fc.bias", .used = true, .times = 1000}},
      {{},
       event::PullShare{.share = 0.875,
                        .shards_left_out = 1,
                        .shards = 8,
                        .step_seconds = 0.25,
                        .all_seconds = 0.5,
                        .pulls = 512}},
      {{}, event::PullShare{.share = 1.0, .shards = 8, .step_seconds = 0.25, .pulls = 16}},
      {{}, event::Reached{.version = 900, .target = {TargetKind::kLoss, 0.25}}},
      {{},
       event::CheckpointKept{
           .version = 100, .bytes = 96'000'000, .took = std::chrono::milliseconds(1250)}},
      {Peer{Role::kShard, 1},
       event::CheckpointFailed{.version = 200,
                               .cause = CheckpointFailure::kSystem,
                               .os_error = 28,
                               .detail = "cannot write /x/shard-1: no space left on device"}},
      {{}, event::Resumed{.version = 100, .from_memory = false, .folder = "/x/step-100"}},
      {{}, event::Resumed{.version = 101, .from_memory = true}},
      {Peer{Role::kShard, 1}, event::Restarted{.cause = event::RestartCause::kServerLost,
                                               .from = RestartPoint::kCheckpointIfAny}},
      {{},
       event::Ended{.outcome = RunOutcome::kFailed,
                    .cause = EndCause::kDiverged,
                    .reason = "training diverged"}},
      {{}, event::Ended{.outcome = RunOutcome::kCompleted, .cause = EndCause::kCompleted}},
  };
  std::vector<EventRecord> events;
  for (const auto& [peer, payload] : all) {
    const Step step = 10 + events.size();
    events.push_back(
        {.at = std::chrono::milliseconds(step), .step = step, .peer = peer, .payload = payload});
  }
  return events;
}

}  // namespace drover

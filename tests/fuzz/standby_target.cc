// A standby and the shard's side of its connection, each with any input from the other. Kept
// versions are complete and of the announced sizes, and a step is reported only when it is kept
// twice.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fuzz/choices.h"
#include "fuzz/promise.h"
#include "fuzz/targets.h"
#include "shard/replication.h"

namespace drover::fuzz {
namespace {

constexpr ShardId kShard = 1;

Replica any_replica(Choices& choices) {
  Replica replica{.kept = {choices.around(3), choices.below(3)}, .least = choices.around(2)};
  for (uint32_t i = choices.below(4); i > 0; --i) {
    replica.blocks.push_back({.length = 1 + choices.below(8), .floats = 1 + 2 * choices.below(8)});
  }
  return replica;
}

void check(const KeptParts& kept) {
  for (const KeptVersion& version : kept.versions()) {
    const CheckpointPart* const part = kept.find(version);
    promise(part != nullptr && part->version == version.version, "what is kept can be found");
    for (const SavedBlock& block : part->blocks) {
      promise(block.parameters != nullptr, "every block has parameters");
      for (const ConstBuffer& floats :
           {block.parameters, block.momentum, block.squares, block.average})
        promise(!floats || floats->size() == block.length, "floats are as many as were announced");
    }
  }
}

void receive(Choices& choices) {
  KeptParts kept;
  ReplicaIntake intake(kShard, kept);
  std::optional<Replica> announced;
  while (!choices.over()) {
    Outbox out;
    if (choices.below(4) == 0) {
      const Replica replica = any_replica(choices);
      if (!intake.on_replica(replica, out)) return;  // the link closes the connection
      announced = replica;
    } else {
      FrameHeader header{.type = choices.below(8) == 0 ? FrameType::kBlock : FrameType::kReplica,
                         .version = announced ? announced->kept.version : 0,
                         .block = choices.below(4),
                         .place = choices.below(5)};
      const auto floats = intake.payload_floats(header);
      if (!floats) continue;  // a real link would be closed; here the input continues
      promise(floats.value() <= 8, "no more memory than was announced");
      promise(intake.on_floats(header, std::make_shared<FloatBuffer>(floats.value()), out).ok(),
              "what was measured is taken");
    }
    promise(out.size() <= 1, "one version at a time becomes complete");
    check(kept);
  }
}

void send(Choices& choices) {
  KeptParts kept;
  ReplicaSource source(kShard, kept);
  Version version = 0;
  Version replicated = 0;
  bool attached = false;
  Step reported = 0;
  while (!choices.over()) {
    Outbox out;
    switch (choices.below(6)) {
      case 0:
        attached = true;
        replicated = 0;
        source.on_standby(out);
        break;
      case 1:
        attached = false;
        source.on_standby_lost(out);
        break;
      case 2: {
        const Version replied = choices.around(version);
        if (source.on_replicated({.version = replied}, out)) {
          promise(attached && replied <= version && replied >= replicated,
                  "only what was sent is kept");
          replicated = replied;
        }
        break;
      }
      case 3:
        source.on_decision(std::min<Step>(choices.around(version), reported));
        break;
      default: {
        ++version;
        source.send_to_coordinator({{Role::kCoordinator, 0, Lane::kControl},
                                    control_frame(StepClosed{.step = version - 1})},
                                   out);
        SavedBlock block{.length = 3, .parameters = std::make_shared<FloatBuffer>(3)};
        source.on_version({.shard = kShard, .version = version, .blocks = {block}}, 1, out);
      }
    }
    for (const Outgoing& message : out) {
      if (message.to.role != Role::kCoordinator) continue;
      const Step step = std::get<StepClosed>(std::get<Control>(message.frame.payload)).step;
      promise(step == reported++, "steps are reported in order");
      promise(!attached || step < replicated, "a step is reported when it is kept twice");
    }
  }
}

}  // namespace

void standby(Bytes input) {
  Choices choices(input);
  if (choices.flip()) {
    receive(choices);
  } else {
    send(choices);
  }
}

}  // namespace drover::fuzz

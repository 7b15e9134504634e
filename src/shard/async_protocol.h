// AsyncProtocol: the protocol of asynchronous runs (policies async and ssp). Each gradient is
// applied on arrival. A block's version counts rounds of as many gradients as there are members.
//
// The step of a push is its worker's own number of the gradient.
#pragma once

#include <optional>
#include <vector>

#include "shard/async_clocks.h"
#include "shard/round_pushes.h"
#include "shard/shard_protocol.h"

namespace drover {

class AsyncProtocol : public ShardProtocol {
 public:
  explicit AsyncProtocol(ShardState& state);

  void on_joined(WorkerId worker) override;
  void on_lost(WorkerId worker) override;
  void on_members_changed(TimePoint now, Outbox& out) override;
  void on_decision(const Decision& decision, TimePoint now, Outbox& out) override;
  Status on_offer(const Push& push, ConstBuffer payload, TimePoint now, Outbox& out) override;
  void on_block(const Push& push, ConstBuffer payload, TimePoint now, Outbox& out) override;
  void on_pull(WorkerId worker, uint32_t received) override;
  void on_done(WorkerId worker, Version version, TimePoint now, Outbox& out) override;
  std::optional<TimePoint> wake_at() const override;
  void on_time(TimePoint now, Outbox& out) override;
  void settle_all(TimePoint now, Outbox& out) override;
  size_t pending() const override;

 protected:
  bool serve_worker(HostedBlock& hosted, const Pull& pull, TimePoint now, Outbox& out) override;
  void on_step_closing(StepClosed& closed) override;

 private:
  struct Round {
    HostedBlock& hosted;
    RoundPushes pushes;
  };

  Answer judge(const Round& round, const Push& push) const;
  // Applies a gradient that judge() accepts.
  Answer apply(Round& round, const Push& push, ConstBuffer payload);
  // A gradient that is not a duplicate was answered, accepted or not.
  void on_answered(Round& round, const Push& push, Answer verdict, TimePoint now, Outbox& out);
  void settle(Round& round, TimePoint now, Outbox& out);

  AsyncClocks clocks_;
  std::vector<Round> rounds_;  // by HostedBlock::index
};

}  // namespace drover

// SyncProtocol: all workers push every step, and a block's next version is made of the gradients
// that came before its step closed.
//
// In partial pull a worker need not wait for all blocks of a version, so that it may be ahead of
// some: a pull is served the newest there is, and a push for a step to come is kept until the block
// collects for it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "shard/cutoff_rule.h"
#include "shard/early_pushes.h"
#include "shard/sent_versions.h"
#include "shard/shard_protocol.h"
#include "shard/step_pushes.h"

namespace drover {

class SyncProtocol : public ShardProtocol {
 public:
  explicit SyncProtocol(ShardState& state);

  void on_joined(WorkerId worker) override;
  void on_lost(WorkerId worker) override;
  void on_members_changed(TimePoint now, Outbox& out) override;
  void on_decision(const Decision& decision, TimePoint now, Outbox& out) override;
  Status on_offer(const Push& push, ConstBuffer payload, TimePoint now, Outbox& out) override;
  void on_block(const Push& push, ConstBuffer payload, TimePoint now, Outbox& out) override;
  void on_pull(WorkerId worker, uint32_t came) override;
  void on_done(WorkerId worker, Version version, TimePoint now, Outbox& out) override;
  std::optional<TimePoint> wake_at() const override;
  void on_time(TimePoint now, Outbox& out) override;
  void settle_all(TimePoint now, Outbox& out) override;
  size_t pending() const override;

 protected:
  bool serve_worker(HostedBlock& hosted, const Pull& pull, TimePoint now, Outbox& out) override;
  void on_step_closing(StepClosed& closed) override;

 private:
  // One block, and which pushes it has in the step it collects for.
  struct Collected {
    HostedBlock& hosted;
    StepPushes pushes;
    EarlyPushes early = {};
    bool released = true;  // workers that are done with this step are not waited for
  };

  CutoffRule::Collecting collecting(const Collected& each) const;
  bool may_close(const Collected& each, TimePoint now) const;
  Answer judge(const Collected& each, const Push& push) const;
  // Settles a block of which something has changed: closes it as long as it has what it waits for,
  // and takes what came early for the step that it collects for then.
  void settle(Collected& each, TimePoint now, Outbox& out);
  void close(Collected& each, TimePoint now, Outbox& out);
  void release_done(Collected& each);
  // Takes a gradient that its block has reached, if it can be used. Returns whether the rule has to
  // be asked again.
  bool take(Collected& each, const Push& push, ConstBuffer payload, TimePoint now, Outbox& out);
  bool take_early(Collected& each, EarlyPush early, TimePoint now, Outbox& out);
  Status take_offer(Collected& each, const Push& push, TimePoint now, Outbox& out);
  void keep_early(Collected& each, const Push& push, ConstBuffer payload, Outbox& out);
  void drop_early(const Push& push, Outbox& out);
  void note_undecided(Step step, TimePoint now);
  void report_news(Outbox& out);

  CutoffRule rule_;
  std::vector<Collected> blocks_;     // by HostedBlock::index
  std::vector<Step> least_push_;      // by worker: the least step it may still push for
  std::optional<SentVersions> sent_;  // in partial pull
};

}  // namespace drover

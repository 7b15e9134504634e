#include "coordinator/step_clock.h"

#include <algorithm>

#include "wire/limits.h"

namespace drover {
namespace {

std::vector<ShardId> shards_of(const BlockMap& blocks) {
  std::vector<ShardId> shards;
  for (const auto& [shard, count] : blocks.on_shards()) shards.push_back(shard);
  return shards;
}

}  // namespace

StepClock::StepClock(const CoordinatorSettings& settings, std::unique_ptr<Policy> policy,
                     const BlockMap& blocks, RunClock run)
    : run_(run),
      steps_(settings.steps),
      workers_(settings.workers),
      shards_(settings.shards),
      full_samples_(settings.full_samples),
      blocks_on_(blocks.on_shards()),
      blocks_(blocks.count()),
      step_(settings.resume ? settings.resume->step : 0),
      ledger_(static_cast<uint32_t>(blocks_on_.size()), settings.asynchronous.has_value(),
              shards_of(blocks)),
      closings_(shards_of(blocks), step_, size_t{settings.shards} * EarlyClosings::kEarlyMax),
      decision_(settings, std::move(policy)),
      orders_(settings.stragglers, settings.probe, settings.seed),
      pull_(settings.pull, blocks_on_) {
  if (settings.resume) ledger_.resume(settings.resume->step, settings.resume->noise);
}

// Members that are not busy; all members if all are busy.
std::vector<WorkerId> StepClock::available(const Membership& members) const {
  std::vector<WorkerId> free = members.list();
  std::erase_if(free, [&](WorkerId worker) { return orders_.is_busy(worker); });
  return free.empty() ? members.list() : free;
}

StepClock::Opened StepClock::open(const Membership& members, double learning_rate, TimePoint now) {
  const std::vector<WorkerId> all = members.list();
  ledger_.open(step_, run_.at(now), all, learning_rate);
  for (const WorkerId worker : all) {
    if (orders_.is_busy(worker)) ledger_.on_busy(worker);
  }
  Opened opened{.decision = decision_.open({.step = step_,
                                            .available = available(members),
                                            .shards = ledger_.shards(),
                                            .noise_scale = ledger_.noise_scale(),
                                            .now = now},
                                           members),
                .shares = {},
                .pull = {}};
  // Shares are for the next step, so that workers have them before they begin it. A worker that
  // receives its share too late uses its previous one. Then some samples of that step are used
  // twice or not at all.
  if (const auto samples = decision_.deal(step_ + 1, all); !samples.empty())
    opened.shares = shares_.deal(step_ + 1, all, samples, full_samples_);
  opened.pull = pull_.decide(step_, opened.decision.cutoff, members.count());
  return opened;
}

std::vector<Decision> StepClock::decisions(const Membership& members) const {
  Decision decision = decision_.order(members);
  // Some shards may not have closed the last step yet.
  decision.step = std::min(step_, steps_ - 1);
  decision.noise_scale = ledger_.noise_scale();
  const Duration limit = decision_.time_limit();
  std::vector<Decision> by_shard;
  for (ShardId shard = 0; shard < shards_; ++shard) {
    // A shard measures time limits from its own opening.
    if (limit > Duration::zero()) decision.time_limit = limit + ledger_.lead(shard);
    by_shard.push_back(decision);
  }
  return by_shard;
}

std::optional<DecisionRecord> StepClock::on_arrived(ShardId shard, const Arrived& arrived,
                                                    const Membership& members, TimePoint now) {
  if (arrived.step != step_ || !decision_.on_arrived(shard, arrived, ledger_.lead(shard)))
    return std::nullopt;
  return decision_.review(step_, members, now);
}

std::optional<TimePoint> StepClock::wake_at() const {
  return at_end() ? std::nullopt : decision_.review_at();
}

std::optional<DecisionRecord> StepClock::on_time(const Membership& members, TimePoint now) {
  return decision_.review(step_, members, now);
}

EarlyClosings::Turn StepClock::accept(const ShardClosing& closing) {
  if (closing.closed.step >= steps_) return EarlyClosings::Turn::kWrong;
  return closings_.accept(closing, step_);
}

void StepClock::take(const ShardClosing& closing) {
  noise_before_ = ledger_.noise();
  digest_ += closing.closed.digest;
  ledger_.on_closed(closing.shard, closing.closed, run_.at(closing.received));
  for (const LateRunTime& late : ledger_.take_late()) {
    orders_.on_late(late.step, late.worker);
    if (!late.was_busy) decision_.learn_late(late.step, late.worker, late.run_time);
  }
}

// With partial pulls workers begin the next step when enough blocks have closed this one.
bool StepClock::may_close() const {
  if (at_end()) return false;
  if (ledger_.is_closed(step_)) return true;
  if (!pull_.is_partial() || ledger_.steps_open_before(step_) >= kDecidedAheadMax) return false;
  uint32_t closed = 0;
  for (const auto& [shard, count] : blocks_on_)
    closed += ledger_.is_closed_on(step_, shard) ? count : 0;
  return closed >= pull_.needed(blocks_);
}

std::vector<WorkerId> StepClock::close(const Membership& members, TimePoint now) {
  if (!ledger_.is_closed(step_)) ledger_.advance(step_, run_.at(now));
  std::vector<WorkerId> stop;
  if (decision_.has_policy()) {
    // A straggler is ordered to stop, unless it is a probe.
    const std::vector<WorkerId> stragglers = ledger_.stragglers(step_);
    orders_.on_closed(step_, stragglers);
    for (const WorkerId worker : stragglers) {
      if (members.has(worker) && orders_.stop(step_, worker, now)) stop.push_back(worker);
    }
    decision_.learn(ledger_.times(step_, workers_));
  }
  ++step_;
  return stop;
}

void StepClock::on_report(WorkerId worker, const StepReport& report) {
  ledger_.on_report(worker, report);
  pull_.learn(report);
}

std::optional<AbandonRecord> StepClock::on_abandoned(WorkerId worker, const Abandoned& abandoned,
                                                     TimePoint now) {
  return orders_.on_abandoned(worker, abandoned, now);
}

void StepClock::forget(WorkerId worker) {
  shares_.forget(worker);
  orders_.on_lost(worker);
}

}  // namespace drover

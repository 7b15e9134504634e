#include "server/shard_block.h"

#include <algorithm>

#include "core/check.h"
#include "server/kernels.h"

namespace drover {

ShardBlock::ShardBlock(const Block& block, const Plan& plan, BufferPool* pool)
    : block_(block),
      steps_(plan.steps),
      evaluate_every_(plan.evaluate_every),
      pool_(pool),
      sum_(plan.deterministic ? SumOrder::kWorker : SumOrder::kArrival, block.length),
      optimizer_(plan.optimizer, block.kind, block.length),
      answered_(plan.workers, false) {}

void ShardBlock::start(SharedBuffer initial, const Membership& members) {
  DROVER_CHECK(!started());
  DROVER_CHECK(initial->size() == block_.length);
  optimizer_.start(initial->span());
  parameters_ = std::move(initial);
  on_members_changed(members);
}

Answer ShardBlock::judge(Step step, WorkerId worker) const {
  if (step < version_ || finished()) return Answer::kLate;
  if (answered_[worker]) return Answer::kDuplicate;
  return Answer::kAccepted;
}

Answer ShardBlock::push(Step step, WorkerId worker, uint32_t samples, SharedBuffer gradient,
                        const Membership& members) {
  const Answer answer = judge(step, worker);
  if (answer != Answer::kAccepted) return answer;
  answered_[worker] = true;
  if (members.has(worker)) --missing_;
  if (!all_finite(gradient->span())) return Answer::kNotFinite;
  sum_.add(worker, samples, std::move(gradient));
  if (members.has(worker)) ++contributed_;
  return Answer::kAccepted;
}

void ShardBlock::on_members_changed(const Membership& members) {
  missing_ = 0;
  for (WorkerId worker = 0; worker < answered_.size(); ++worker) {
    if (members.has(worker) && !answered_[worker]) ++missing_;
  }
  // What somebody lost has delivered is used, but must not crowd out those who are alive.
  contributed_ =
      static_cast<uint32_t>(std::count_if(sum_.workers().begin(), sum_.workers().end(),
                                          [&](WorkerId worker) { return members.has(worker); }));
}

bool ShardBlock::complete(uint32_t cutoff) const {
  return started() && !finished() && (contributed_ >= cutoff || missing_ == 0);
}

void ShardBlock::close(double learning_rate, const Membership& members) {
  DROVER_CHECK(started() && !finished());
  SharedBuffer next = pool_->take(block_.length);
  optimizer_.apply(sum_, learning_rate, parameters_->span(), next->span());
  parameters_ = std::move(next);
  sum_.reset();
  contributed_ = 0;
  ++version_;
  std::fill(answered_.begin(), answered_.end(), false);
  missing_ = members.count();
  if (snapshot_due()) keep_snapshot();
}

bool ShardBlock::snapshot_due() const {
  return finished() || (evaluate_every_ > 0 && version_ % evaluate_every_ == 0);
}

void ShardBlock::keep_snapshot() {
  ConstBuffer values = parameters_;
  if (const auto averaged = optimizer_.averaged(); !averaged.empty()) {
    SharedBuffer copy = pool_->take(block_.length);
    std::copy(averaged.begin(), averaged.end(), copy->data());
    values = std::move(copy);
  }
  snapshots_[0] = std::move(snapshots_[1]);
  snapshots_[1] = {version_, std::move(values)};
}

ConstBuffer ShardBlock::snapshot(Version version) const {
  for (const Snapshot& each : snapshots_) {
    if (each.values && each.version == version) return each.values;
  }
  return nullptr;
}

Version ShardBlock::newest_snapshot() const {
  return snapshots_[1].values ? snapshots_[1].version : 0;
}

}  // namespace drover

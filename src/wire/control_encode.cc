// Encodes control messages as protobuf.
#include "wire/control.h"
#include "wire/control.pb.h"

namespace drover {
namespace {

void put_tensors(const std::vector<TensorSpec>& tensors,
                 google::protobuf::RepeatedPtrField<pb::Tensor>* out) {
  for (const TensorSpec& tensor : tensors) {
    pb::Tensor* each = out->Add();
    each->set_name(tensor.name);
    each->set_size(tensor.size);
    each->set_kind(static_cast<uint32_t>(tensor.kind));
    each->set_rate(tensor.rate);
    each->set_decay(tensor.decay);
    for (const uint64_t extent : tensor.shape) each->add_shape(extent);
    each->set_group(tensor.group);
  }
}

void put_blocks(const BlockPlan& plan, pb::BlockPlan* out) {
  out->set_shards(plan.shards);
  for (const Block& block : plan.blocks) {
    pb::Block* each = out->add_blocks();
    each->set_tensor(block.tensor);
    each->set_tensors(block.tensors);
    each->set_offset(block.offset);
    each->set_length(block.length);
    each->set_shard(block.shard);
    each->set_kind(static_cast<uint32_t>(block.kind));
  }
}

void put_optimizer(const OptimizerSettings& from, pb::Optimizer* out) {
  out->set_kind(static_cast<uint32_t>(from.kind));
  out->set_momentum(from.momentum);
  out->set_rms_decay(from.rms_decay);
  out->set_rms_momentum(from.rms_momentum);
  out->set_beta1(from.beta1);
  out->set_beta2(from.beta2);
  out->set_epsilon(from.epsilon);
  out->set_weight_decay(from.weight_decay);
  out->set_ema_decay(from.ema_decay);
}

void put_kept(const KeptVersion& from, pb::KeptVersion* out) {
  out->set_version(from.version);
  out->set_life(from.incarnation);
}

void put(const Hello& from, pb::Control& to) {
  pb::Hello* out = to.mutable_hello();
  out->set_role(static_cast<uint32_t>(from.role));
  out->set_index(from.index);
  out->set_lane(static_cast<uint32_t>(from.lane));
  out->set_host(from.host);
  out->set_pid(from.pid);
  out->set_address(from.address);
  put_tensors(from.tensors, out->mutable_tensors());
  if (from.learning) {
    put_optimizer(from.learning->optimizer, out->mutable_learning()->mutable_optimizer());
    out->mutable_learning()->set_rate(from.learning->rate);
  }
  for (const KeptVersion& kept : from.kept) put_kept(kept, out->add_kept());
  if (from.mpi) {
    out->set_mpi_rank(from.mpi->rank);
    out->set_mpi_tag(from.mpi->tag);
  }
}

void put(const Challenge& from, pb::Control& to) {
  to.mutable_challenge()->set_nonce(from.nonce);
  to.mutable_challenge()->set_proof(from.proof);
}

void put(const Refusal& from, pb::Control& to) {
  to.mutable_refusal()->set_reason(from.reason);
  to.mutable_refusal()->set_later(from.retry_later);
}

void put(const Plan& from, pb::Control& to) {
  pb::Plan* out = to.mutable_plan();
  out->set_workers(from.workers);
  out->set_steps(from.steps);
  out->set_deterministic(from.learning.deterministic);
  out->set_evaluate_every(from.evaluate_every);
  put_optimizer(from.learning.optimizer, out->mutable_optimizer());
  pb::Schedule* schedule = out->mutable_schedule();
  schedule->set_kind(static_cast<uint32_t>(from.learning.schedule.kind));
  schedule->set_base(from.learning.schedule.base);
  schedule->set_warmup_steps(from.learning.schedule.warmup_steps);
  schedule->set_decay_every(from.learning.schedule.decay_every);
  schedule->set_decay_factor(from.learning.schedule.decay_factor);
  schedule->set_floor(from.learning.schedule.floor);
  schedule->set_total_steps(from.learning.schedule.total_steps);
  schedule->set_rule(static_cast<uint32_t>(from.learning.schedule.rule));
  out->set_full_samples(from.full_samples);
  out->set_free_running(from.asynchronous);
  if (from.staleness) out->set_staleness(*from.staleness);
  out->set_weak(from.partial_pull);
  out->set_push_grace_ns(from.push_grace.count());
  out->set_first_step(from.first_step);
  out->set_resume_from(from.resume_from);
  if (from.kept) put_kept(*from.kept, out->mutable_kept());
  out->set_standby(from.standby);
  out->set_life(from.incarnation);
  out->set_checkpoint_every(from.checkpoint_every);
  out->set_checkpoint_dir(from.checkpoint_dir);
  out->set_guard(static_cast<uint32_t>(from.learning.guard));
  if (from.learning.guard != GuardRule::kOff) out->set_guard_factor(from.learning.guard_factor);
  put_tensors(from.tensors, out->mutable_tensors());
  put_blocks(from.blocks, out->mutable_blocks());
}

void put_slow(const SlowRule& from, pb::SlowRule* out) {
  if (from.workers) {
    out->set_first_worker(from.workers->first);
    out->set_last_worker(from.workers->second);
  }
  if (from.steps) {
    out->set_first_step(from.steps->first);
    out->set_last_step(from.steps->second);
  }
  out->set_share(from.share);
  out->set_factor(from.factor);
  out->set_delay_ns(from.delay.count());
}

void put(const Welcome& from, pb::Control& to) {
  pb::Welcome* out = to.mutable_welcome();
  for (const std::string& shard : from.shards) out->add_shards(shard);
  put_blocks(from.blocks, out->mutable_blocks());
  out->set_steps(from.steps);
  out->set_evaluate_every(from.evaluate_every);
  out->set_free_running(from.asynchronous);
  out->set_workers(from.workers);
  out->set_batch(from.batch);
  out->set_seed(from.seed);
  out->set_wire_dtype(static_cast<uint32_t>(from.wire_dtype));
  for (const SlowRule& rule : from.slow) put_slow(rule, out->add_slow());
  out->set_weak(from.partial_pull);
  out->set_pull_share(from.pull_share);
  out->set_pull_grace_ns(from.pull_grace.count());
  out->set_first_step(from.first_step);
}

void put(const PlaceOffer& from, pb::Control& to) {
  to.mutable_place_offer()->set_worker(from.worker);
  to.mutable_place_offer()->set_job(from.job);
}

void put(const Connected& from, pb::Control& to) {
  pb::Connected* out = to.mutable_connected();
  if (from.mpi_rank) out->set_mpi_rank(*from.mpi_rank);
}

void put(const WantInitial&, pb::Control& to) { to.mutable_want_initial(); }
void put(const Ready&, pb::Control& to) { to.mutable_ready(); }

void put(const Decision& from, pb::Control& to) {
  pb::Decision* out = to.mutable_decision();
  out->set_step(from.step);
  out->set_cutoff(from.cutoff);
  out->set_time_limit_ns(from.time_limit.count());
  out->set_at_least(from.at_least);
  for (const WorkerId worker : from.alive) out->add_alive(worker);
  out->set_news_every(from.report_every);
  out->set_noise_scale(from.noise_scale);
}

void put_arrivals(const std::vector<StepClosed::Arrival>& arrivals,
                  google::protobuf::RepeatedPtrField<pb::Arrival>* out) {
  for (const StepClosed::Arrival& arrival : arrivals) {
    pb::Arrival* each = out->Add();
    each->set_worker(arrival.worker);
    each->set_run_time_ns(arrival.run_time.count());
    each->set_step(arrival.step);
  }
}

void put(const StepClosed& from, pb::Control& to) {
  pb::StepClosed* out = to.mutable_step_closed();
  out->set_step(from.step);
  out->set_elapsed_ns(from.elapsed.count());
  out->set_busy_ns(from.busy.count());
  put_arrivals(from.arrivals, out->mutable_arrivals());
  put_arrivals(from.late, out->mutable_late());
  for (const StepClosed::Refused& refused : from.refused) {
    pb::Refused* each = out->add_refused();
    each->set_worker(refused.worker);
    each->set_block(refused.block);
  }
  out->set_samples(from.samples);
  out->set_gradients(from.gradients);
  out->set_digest(from.digest);
  out->set_closing_ns(from.closing.count());
  out->set_undecided_ns(from.undecided.count());
  out->set_signal(from.signal);
  out->set_noise(from.noise);
  for (const BlockCount& count : from.block_counts) {
    pb::BlockCount* each = out->add_block_counts();
    each->set_contributors(count.contributors);
    each->set_blocks(count.blocks);
  }
  for (const StepClosed::Outlier& outlier : from.outliers) {
    pb::Outlier* each = out->add_outliers();
    each->set_worker(outlier.worker);
    each->set_block(outlier.block);
    each->set_blocks(outlier.blocks);
    each->set_ratio(outlier.ratio);
    each->set_used(outlier.used);
  }
}

void put(const Arrived& from, pb::Control& to) {
  to.mutable_arrived()->set_step(from.step);
  put_arrivals(from.arrivals, to.mutable_arrived()->mutable_arrivals());
}

void put(const Share& from, pb::Control& to) {
  pb::Share* out = to.mutable_share();
  out->set_from(from.from);
  out->set_first(from.first);
  out->set_count(from.count);
  out->set_total(from.total);
}

void put(const Abandoned& from, pb::Control& to) {
  pb::Abandoned* out = to.mutable_abandoned();
  out->set_step(from.step);
  out->set_resumed(from.resumed);
  out->set_wasted_ns(from.wasted.count());
}

void put(const StepReport& from, pb::Control& to) {
  pb::StepReport* out = to.mutable_step_report();
  out->set_step(from.step);
  out->set_samples(from.samples);
  out->set_loss(from.loss);
  out->set_correct(from.correct);
  out->set_predictions(from.predictions);
  out->set_compute_ns(from.compute.count());
  if (from.learning_rate) out->set_learning_rate(*from.learning_rate);
  out->set_blocks(from.blocks);
  out->set_fresh(from.fresh);
  out->set_staleness_sum(from.staleness_sum);
  out->set_staleness_max(from.staleness_max);
  for (const PullResponse& response : from.responses) {
    pb::PullResponse* each = out->add_responses();
    each->set_time_ns(response.time.count());
    each->set_came(response.came);
  }
}

void put(const PullShare& from, pb::Control& to) {
  to.mutable_pull_share()->set_from(from.from);
  to.mutable_pull_share()->set_share(from.share);
}

void put(const LearningRate& from, pb::Control& to) {
  pb::LearningRate* out = to.mutable_learning_rate();
  out->set_from(from.from);
  out->set_rate(from.rate);
  for (const GroupSettings& group : from.groups) {
    pb::GroupSettings* each = out->add_groups();
    each->set_rate(group.rate);
    put_optimizer(group.optimizer, each->mutable_optimizer());
  }
}

void put(const GradientNorm& from, pb::Control& to) {
  pb::GradientNorm* out = to.mutable_gradient_norm();
  out->set_step(from.step);
  out->set_squares(from.squares);
  out->set_largest(from.largest);
}

void put(const Release& from, pb::Control& to) {
  pb::Release* out = to.mutable_release();
  out->set_step(from.step);
  out->set_scale(from.scale);
  out->set_used(from.used);
}

void put(const RunLength& from, pb::Control& to) { to.mutable_run_length()->set_steps(from.steps); }

void put(const CheckpointSaved& from, pb::Control& to) {
  pb::CheckpointSaved* out = to.mutable_checkpoint_saved();
  out->set_version(from.version);
  out->set_file(from.file);
  out->set_bytes(from.bytes);
  out->set_checksum(from.checksum);
  out->set_took_ns(from.took.count());
  out->set_error(from.error);
  out->set_failure(static_cast<uint32_t>(from.failure));
  out->set_os_error(static_cast<uint32_t>(from.os_error));
}

void put(const StandBy& from, pb::Control& to) { to.mutable_stand_by()->set_address(from.address); }

void put(const Replica& from, pb::Control& to) {
  pb::Replica* out = to.mutable_replica();
  put_kept(from.kept, out->mutable_kept());
  out->set_least(from.least);
  for (const Replica::Block& block : from.blocks) {
    pb::ReplicaBlock* each = out->add_blocks();
    each->set_offset(block.offset);
    each->set_length(block.length);
    each->set_updates(block.updates);
    each->set_beta1_power(block.beta1_power);
    each->set_beta2_power(block.beta2_power);
    each->set_floats(block.floats);
    each->mutable_lengths()->Add(block.lengths.begin(), block.lengths.end());
  }
}

void put(const Replicated& from, pb::Control& to) {
  to.mutable_replicated()->set_version(from.version);
}

void put(const Evaluated& from, pb::Control& to) {
  pb::Evaluated* out = to.mutable_evaluated();
  out->set_version(from.version);
  out->set_loss(from.loss);
  out->set_accuracy(from.accuracy);
  out->set_samples(from.samples);
}

void put(const Farewell& from, pb::Control& to) {
  to.mutable_farewell()->set_outcome(static_cast<uint32_t>(from.outcome));
  to.mutable_farewell()->set_reason(from.reason);
  to.mutable_farewell()->set_again(from.rejoin);
}

}  // namespace

std::string encode_control(const Control& message) {
  pb::Control encoded;
  std::visit([&](const auto& each) { put(each, encoded); }, message);
  return encoded.SerializeAsString();
}

}  // namespace drover

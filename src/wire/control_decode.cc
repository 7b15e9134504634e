// Decodes control messages from protobuf and validates all values.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/layout_check.h"
#include "wire/control.h"
#include "wire/control.pb.h"
#include "wire/limits.h"

namespace drover {
namespace {

// Keeps the first error, so that the functions below need not check after every field.
class Reader {
 public:
  template <typename Enum>
  Enum one_of(uint32_t value, Enum last, const char* what) {
    if (value > static_cast<uint32_t>(last))
      fail(std::string(what) + " " + std::to_string(value) + " is unknown");
    return static_cast<Enum>(value);
  }
  template <typename Number>
  Number at_most(Number value, uint64_t limit, const char* what) {
    if (static_cast<uint64_t>(value) > limit) {
      fail(std::string(what) + " is " + std::to_string(value) + ", more than the limit of " +
           std::to_string(limit));
    }
    return value;
  }
  Duration duration(int64_t nanoseconds, const char* what) {
    if (nanoseconds < 0) fail(std::string(what) + " is negative");
    if (nanoseconds > kDurationMaxNs) fail(std::string(what) + " is longer than any run");
    return Duration(nanoseconds);
  }
  double share(double value) {
    if (!(value > 0.0 && value <= 1.0)) fail("a share is not above 0 and at most 1");
    return value;
  }
  double factor(double value, const char* what) {
    if (!(value >= 0.0 && std::isfinite(value)))
      fail(std::string(what) + " is negative or not a number");
    return value;
  }
  double below_one(double value, const char* what) {
    if (!(value >= 0.0 && value < 1.0)) fail(std::string(what) + " is not below 1");
    return value;
  }
  // Infinity is a norm, too.
  double not_negative(double value, const char* what) {
    if (!(value >= 0.0)) fail(std::string(what) + " is negative or not a number");
    return value;
  }
  const std::string& text(const std::string& value, const char* what) {
    at_most(value.size(), kTextBytesMax, what);
    return value;
  }
  // Of exactly this size, or empty.
  const std::string& exactly(const std::string& value, size_t bytes, const char* what) {
    if (!value.empty() && value.size() != bytes)
      fail(std::string(what) + " has " + std::to_string(value.size()) + " bytes");
    return value;
  }
  void fail(std::string why) {
    if (!error_) error_ = std::move(why);
  }
  const std::optional<std::string>& error() const { return error_; }

 private:
  std::optional<std::string> error_;
};

// A shape has as many values as its tensor, or is empty.
std::vector<uint64_t> get_shape(const pb::Tensor& from, Reader& reader) {
  std::vector<uint64_t> shape;
  reader.at_most(static_cast<uint64_t>(from.shape_size()), kDimensionsMax, "a tensor's dimensions");
  uint64_t values = 1;
  for (const uint64_t extent : from.shape()) {
    if (reader.error()) break;
    shape.push_back(reader.at_most(extent, kParametersMax, "a tensor's extent"));
    if (extent > 0 && values > kParametersMax / extent)
      reader.fail("a tensor's shape is too large");
    values *= extent;
  }
  if (!shape.empty() && values != from.size())
    reader.fail("a tensor's shape does not match its size");
  return shape;
}

std::vector<TensorSpec> get_tensors(const google::protobuf::RepeatedPtrField<pb::Tensor>& from,
                                    Reader& reader) {
  std::vector<TensorSpec> tensors;
  reader.at_most(static_cast<uint64_t>(from.size()), kTensorsMax, "the number of tensors");
  uint64_t total = 0;
  for (const pb::Tensor& each : from) {
    if (reader.error()) break;
    tensors.push_back({.name = reader.text(each.name(), "a tensor's name"),
                       .size = reader.at_most(each.size(), kParametersMax, "a tensor's size"),
                       .kind = reader.one_of(each.kind(), TensorKind::kAveraged, "tensor kind"),
                       .rate = reader.factor(each.rate(), "a tensor's learning rate"),
                       .decay = reader.factor(each.decay(), "a tensor's weight decay"),
                       .shape = get_shape(each, reader),
                       .group = reader.at_most(each.group(), kGroupsMax, "a tensor's group")});
    total = reader.at_most(total + each.size(), kParametersMax, "the number of parameters");
  }
  return tensors;
}

BlockPlan get_blocks(const pb::BlockPlan& from, Reader& reader) {
  BlockPlan plan;
  plan.shards = reader.at_most(from.shards(), kShardsMax, "the number of shards");
  reader.at_most(static_cast<uint64_t>(from.blocks_size()), kBlocksMax, "the number of blocks");
  for (const pb::Block& each : from.blocks()) {
    if (reader.error()) break;
    if (each.shard() >= plan.shards) reader.fail("a block belongs to a shard that does not exist");
    if (each.length() == 0) reader.fail("a block is empty");
    plan.blocks.push_back(
        {.id = static_cast<BlockId>(plan.blocks.size()),
         .tensor = reader.at_most(each.tensor(), kTensorsMax, "a block's tensor"),
         .tensors = reader.at_most(each.tensors(), kTensorsMax, "a block's tensors"),
         .offset = reader.at_most(each.offset(), kParametersMax, "a block's offset"),
         .length = reader.at_most(each.length(), kBlockFloatsMax, "a block's length"),
         .shard = each.shard(),
         .kind = reader.one_of(each.kind(), TensorKind::kAveraged, "block kind")});
  }
  return plan;
}

OptimizerSettings get_optimizer(const pb::Optimizer& from, Reader& reader) {
  return {.kind = reader.one_of(from.kind(), OptimizerKind::kAdamW, "optimizer"),
          .momentum = from.momentum(),
          .rms_decay = from.rms_decay(),
          .rms_momentum = from.rms_momentum(),
          .beta1 = from.beta1(),
          .beta2 = from.beta2(),
          .epsilon = from.epsilon(),
          .weight_decay = from.weight_decay(),
          .ema_decay = from.ema_decay()};
}

KeptVersion get_kept(const pb::KeptVersion& from) {
  return {.version = from.version(), .incarnation = from.life()};
}

Control get(const pb::Hello& from, Reader& reader) {
  Hello hello{.role = reader.one_of(from.role(), Role::kStandby, "role"),
              .index = reader.at_most(from.index(), kWorkersMax, "the peer's index"),
              .lane = reader.one_of(from.lane(), Lane::kBulk, "lane"),
              .host = reader.text(from.host(), "the host"),
              .pid = from.pid(),
              .address = reader.text(from.address(), "the address"),
              .tensors = get_tensors(from.tensors(), reader)};
  if (from.has_learning()) {
    hello.learning = Learning{.optimizer = get_optimizer(from.learning().optimizer(), reader),
                              .rate = reader.factor(from.learning().rate(), "the learning rate")};
  }
  reader.at_most(static_cast<uint64_t>(from.kept_size()), kKeptMax, "the number of versions");
  for (const pb::KeptVersion& each : from.kept()) {
    if (reader.error()) break;
    hello.kept.push_back(get_kept(each));
  }
  if (from.has_mpi_rank()) {
    hello.mpi = MpiPlace{.rank = reader.at_most(from.mpi_rank(), kMpiRankMax, "an MPI rank"),
                         .tag = reader.at_most(from.mpi_tag(), kMpiTagMax, "an MPI tag")};
  }
  return hello;
}

Control get(const pb::Challenge& from, Reader& reader) {
  return Challenge{.nonce = reader.exactly(from.nonce(), kNonceBytes, "a nonce"),
                   .proof = reader.exactly(from.proof(), kProofBytes, "a proof")};
}

Control get(const pb::Refusal& from, Reader& reader) {
  return Refusal{.reason = reader.text(from.reason(), "the reason"), .retry_later = from.later()};
}

Control get(const pb::Plan& from, Reader& reader) {
  const pb::Schedule& schedule = from.schedule();
  Plan plan{.workers = reader.at_most(from.workers(), kWorkersMax, "the number of workers"),
            .steps = from.steps(),
            .evaluate_every = from.evaluate_every(),
            .learning = {.optimizer = get_optimizer(from.optimizer(), reader),
                         .schedule = {.kind = reader.one_of(schedule.kind(), ScheduleKind::kCosine,
                                                            "schedule"),
                                      .base = schedule.base(),
                                      .warmup_steps = schedule.warmup_steps(),
                                      .decay_every = schedule.decay_every(),
                                      .decay_factor = schedule.decay_factor(),
                                      .floor = schedule.floor(),
                                      .total_steps = schedule.total_steps(),
                                      .rule = reader.one_of(schedule.rule(), RateRule::kAdaScale,
                                                            "learning-rate rule")},
                         .deterministic = from.deterministic()},
            .full_samples = from.full_samples(),
            .asynchronous = from.free_running(),
            .staleness = {},
            .tensors = get_tensors(from.tensors(), reader),
            .blocks = get_blocks(from.blocks(), reader)};
  if (from.has_staleness()) plan.staleness = from.staleness();
  plan.partial_pull = from.weak();
  plan.push_grace = reader.duration(from.push_grace_ns(), "the grace for pushes");
  plan.first_step = from.first_step();
  plan.resume_from = reader.text(from.resume_from(), "the checkpoint's folder");
  if (from.has_kept()) plan.kept = get_kept(from.kept());
  plan.standby = from.standby();
  plan.incarnation = from.life();
  plan.checkpoint_every = from.checkpoint_every();
  plan.checkpoint_dir = reader.text(from.checkpoint_dir(), "the folder for checkpoints");
  plan.learning.guard = reader.one_of(from.guard(), GuardRule::kRefuse, "guard");
  if (plan.learning.guard != GuardRule::kOff) plan.learning.guard_factor = from.guard_factor();
  // Also refuses NaN.
  if (!(plan.learning.guard_factor >= kGuardFactorMin &&
        plan.learning.guard_factor <= kGuardFactorMax))
    reader.fail("the guard's factor is out of range");
  if (plan.first_step > plan.steps) reader.fail("the first step is after the last");
  if (!reader.error()) {
    if (const Status fits = check_blocks(plan.blocks, Layout(plan.tensors)); !fits)
      reader.fail(fits.error().message);
  }
  return plan;
}

SlowRule get_slow(const pb::SlowRule& from, Reader& reader) {
  SlowRule rule;
  if (from.has_first_worker()) rule.workers = {from.first_worker(), from.last_worker()};
  if (from.has_first_step()) rule.steps = {from.first_step(), from.last_step()};
  if (rule.workers && rule.workers->first > rule.workers->second)
    reader.fail("a slow rule's first worker comes after its last");
  if (rule.steps && rule.steps->first > rule.steps->second)
    reader.fail("a slow rule's first step comes after its last");
  rule.share = from.share();
  // Also refuses NaN.
  if (!(rule.share >= 0.0 && rule.share <= 1.0))
    reader.fail("a slow rule's share is not from 0 to 1");
  rule.factor = from.factor();
  if (!(rule.factor >= 1.0 && rule.factor <= SlowRule::kFactorMax))
    reader.fail("a slow rule's factor is out of range");
  rule.delay = reader.duration(from.delay_ns(), "a slow rule's delay");
  if (rule.delay > SlowRule::kDelayMax) reader.fail("a slow rule's delay is longer than an hour");
  return rule;
}

Control get(const pb::Welcome& from, Reader& reader) {
  Welcome welcome{.shards = {},
                  .blocks = get_blocks(from.blocks(), reader),
                  .steps = from.steps(),
                  .evaluate_every = from.evaluate_every(),
                  .asynchronous = from.free_running()};
  welcome.workers = reader.at_most(from.workers(), kWorkersMax, "the number of workers");
  welcome.batch = reader.at_most(from.batch(), kSamplesMax, "the batch");
  welcome.seed = from.seed();
  welcome.wire_dtype = reader.one_of(from.wire_dtype(), NumberType::kFloat16, "number type");
  reader.at_most(static_cast<uint64_t>(from.slow_size()), kSlowRulesMax,
                 "the number of slow rules");
  for (const pb::SlowRule& rule : from.slow()) {
    if (reader.error()) break;
    welcome.slow.push_back(get_slow(rule, reader));
  }
  welcome.partial_pull = from.weak();
  welcome.pull_share = welcome.partial_pull ? reader.share(from.pull_share()) : 1.0;
  welcome.first_step = from.first_step();
  welcome.pull_grace = reader.duration(from.pull_grace_ns(), "the grace for pulls");
  reader.at_most(static_cast<uint64_t>(from.shards_size()), kShardsMax, "the number of shards");
  for (const std::string& shard : from.shards()) {
    if (reader.error()) break;
    welcome.shards.push_back(reader.text(shard, "a shard's address"));
  }
  return welcome;
}

Control get(const pb::PlaceOffer& from, Reader& reader) {
  return PlaceOffer{.worker = reader.at_most(from.worker(), kWorkersMax, "the worker's index"),
                    .job = reader.text(from.job(), "the job")};
}

Control get(const pb::Connected& from, Reader& reader) {
  Connected connected;
  if (from.has_mpi_rank())
    connected.mpi_rank = reader.at_most(from.mpi_rank(), kMpiRankMax, "an MPI rank");
  return connected;
}

Control get(const pb::WantInitial&, Reader&) { return WantInitial{}; }
Control get(const pb::Ready&, Reader&) { return Ready{}; }

Control get(const pb::Decision& from, Reader& reader) {
  Decision decision{.step = from.step(),
                    .cutoff = from.cutoff(),
                    .time_limit = reader.duration(from.time_limit_ns(), "the time limit"),
                    .at_least = from.at_least(),
                    .alive = {},
                    .report_every = from.news_every(),
                    .noise_scale = from.noise_scale()};
  if (!(decision.noise_scale >= 0.0)) reader.fail("the noise scale is negative");
  reader.at_most(static_cast<uint64_t>(from.alive_size()), kWorkersMax,
                 "the number of workers alive");
  for (const uint32_t worker : from.alive()) {
    if (reader.error()) break;
    decision.alive.push_back(reader.at_most(worker, kWorkersMax, "a worker's id"));
  }
  return decision;
}

std::vector<StepClosed::Arrival> get_arrivals(
    const google::protobuf::RepeatedPtrField<pb::Arrival>& from, Reader& reader) {
  std::vector<StepClosed::Arrival> arrivals;
  reader.at_most(static_cast<uint64_t>(from.size()), uint64_t{kWorkersMax} * 64,
                 "the number of arrivals");
  for (const pb::Arrival& each : from) {
    if (reader.error()) break;
    arrivals.push_back({.worker = reader.at_most(each.worker(), kWorkersMax, "a worker's id"),
                        .run_time = reader.duration(each.run_time_ns(), "a run-time"),
                        .step = each.step()});
  }
  return arrivals;
}

Control get(const pb::StepClosed& from, Reader& reader) {
  StepClosed closed{
      .step = from.step(),
      .elapsed = reader.duration(from.elapsed_ns(), "the time of a step"),
      .closing = reader.duration(from.closing_ns(), "the time of a closing"),
      .undecided = reader.duration(from.undecided_ns(), "the time without a decision"),
      .busy = reader.duration(from.busy_ns(), "the time that a shard worked"),
      .arrivals = get_arrivals(from.arrivals(), reader),
      .late = get_arrivals(from.late(), reader),
      .refused = {},
      .samples = from.samples(),
      .gradients = from.gradients(),
      .signal = from.signal(),
      .noise = from.noise(),
      .block_counts = {},
      .digest = from.digest()};
  for (const pb::BlockCount& each : from.block_counts()) {
    if (reader.error()) break;
    closed.block_counts.push_back(
        {.contributors = reader.at_most(each.contributors(), kWorkersMax, "contributors"),
         .blocks = reader.at_most(each.blocks(), kBlocksMax, "the number of blocks")});
  }
  for (const pb::Refused& each : from.refused()) {
    if (reader.error()) break;
    closed.refused.push_back({.worker = reader.at_most(each.worker(), kWorkersMax, "a worker's id"),
                              .block = reader.at_most(each.block(), kBlocksMax, "a block's id")});
  }
  for (const pb::Outlier& each : from.outliers()) {
    if (reader.error()) break;
    closed.outliers.push_back(
        {.worker = reader.at_most(each.worker(), kWorkersMax, "a worker's id"),
         .block = reader.at_most(each.block(), kBlocksMax, "a block's id"),
         .blocks = reader.at_most(each.blocks(), kBlocksMax, "the number of blocks"),
         .ratio = each.ratio(),
         .used = each.used()});
  }
  return closed;
}

Control get(const pb::Arrived& from, Reader& reader) {
  return Arrived{.step = from.step(), .arrivals = get_arrivals(from.arrivals(), reader)};
}

Control get(const pb::Share& from, Reader& reader) {
  const Share share{.from = from.from(),
                    .first = from.first(),
                    .count = reader.at_most(from.count(), kSamplesMax, "the number of samples"),
                    .total = from.total()};
  if (share.count == 0) reader.fail("a share has no samples");
  if (share.first > share.total || share.count > share.total - share.first)
    reader.fail("a share is outside its step");
  return share;
}

Control get(const pb::Abandoned& from, Reader& reader) {
  return Abandoned{.step = from.step(),
                   .resumed = from.resumed(),
                   .wasted = reader.duration(from.wasted_ns(), "the time that was wasted")};
}

Control get(const pb::StepReport& from, Reader& reader) {
  StepReport report{
      .step = from.step(),
      .samples = reader.at_most(from.samples(), kSamplesMax, "the number of samples"),
      .loss = from.loss(),
      .correct = from.correct(),
      .predictions = from.predictions(),
      .compute = reader.duration(from.compute_ns(), "the time of a gradient"),
      .learning_rate = {},
      .blocks = reader.at_most(from.blocks(), kBlocksMax, "the number of blocks"),
      .fresh = reader.at_most(from.fresh(), from.blocks(), "the number of fresh blocks"),
      .staleness_sum = from.staleness_sum(),
      .staleness_max = from.staleness_max(),
      .responses = {}};
  if (from.has_learning_rate())
    report.learning_rate = reader.factor(from.learning_rate(), "the learning rate");
  reader.at_most(static_cast<uint64_t>(from.responses_size()), kShardsMax, "the number of shards");
  for (const pb::PullResponse& each : from.responses()) {
    if (reader.error()) break;
    report.responses.push_back(
        {reader.duration(each.time_ns(), "a shard's time to answer"), each.came()});
  }
  return report;
}

Control get(const pb::PullShare& from, Reader& reader) {
  return PullShare{.from = from.from(), .share = reader.share(from.share())};
}

// A setting that a step uses as it is: a number, so that no update can be spoiled by it.
OptimizerSettings get_step_optimizer(const pb::Optimizer& from, Reader& reader) {
  const OptimizerSettings settings = get_optimizer(from, reader);
  reader.below_one(settings.beta1, "beta1");
  reader.below_one(settings.beta2, "beta2");
  reader.factor(settings.momentum, "momentum");
  reader.factor(settings.rms_decay, "the decay of squares");
  reader.factor(settings.rms_momentum, "momentum");
  reader.factor(settings.epsilon, "epsilon");
  reader.factor(settings.weight_decay, "weight decay");
  return settings;
}

Control get(const pb::LearningRate& from, Reader& reader) {
  LearningRate rate{
      .from = from.from(), .rate = reader.factor(from.rate(), "the learning rate"), .groups = {}};
  reader.at_most(static_cast<uint64_t>(from.groups_size()), kGroupsMax, "the number of groups");
  for (const pb::GroupSettings& each : from.groups()) {
    if (reader.error()) break;
    rate.groups.push_back({.rate = reader.factor(each.rate(), "the learning rate of a group"),
                           .optimizer = get_step_optimizer(each.optimizer(), reader)});
  }
  return rate;
}

Control get(const pb::GradientNorm& from, Reader& reader) {
  return GradientNorm{.step = from.step(),
                      .squares = reader.not_negative(from.squares(), "a squared norm"),
                      .largest = reader.not_negative(from.largest(), "a norm")};
}

Control get(const pb::Release& from, Reader& reader) {
  return Release{.step = from.step(),
                 .scale = reader.factor(from.scale(), "the scale of a gradient"),
                 .used = from.used()};
}

Control get(const pb::RunLength& from, Reader& reader) {
  return RunLength{.steps = reader.at_most(from.steps(), kEndless, "the number of steps")};
}

Control get(const pb::CheckpointSaved& from, Reader& reader) {
  return CheckpointSaved{.version = from.version(),
                         .file = reader.text(from.file(), "a file's name"),
                         .bytes = from.bytes(),
                         .checksum = from.checksum(),
                         .took = reader.duration(from.took_ns(), "the time of a checkpoint"),
                         .failure = reader.one_of(from.failure(), CheckpointFailure::kTimeout,
                                                  "why a checkpoint failed"),
                         .os_error = static_cast<int>(from.os_error()),
                         .error = reader.text(from.error(), "the error")};
}

Control get(const pb::StandBy& from, Reader& reader) {
  return StandBy{.address = reader.text(from.address(), "the address")};
}

Control get(const pb::Replica& from, Reader& reader) {
  Replica replica{.kept = get_kept(from.kept()), .least = from.least(), .blocks = {}};
  reader.at_most(static_cast<uint64_t>(from.blocks_size()), kBlocksMax, "the number of blocks");
  uint64_t total = 0;
  for (const pb::ReplicaBlock& each : from.blocks()) {
    if (reader.error()) break;
    if (each.length() == 0) reader.fail("a block is empty");
    if (each.floats() % 2 == 0) reader.fail("a block has no parameters");
    replica.blocks.push_back(
        {.offset = reader.at_most(each.offset(), kParametersMax, "a block's offset"),
         .length = reader.at_most(each.length(), kBlockFloatsMax, "a block's length"),
         .updates = each.updates(),
         .beta1_power = reader.factor(each.beta1_power(), "a power of beta1"),
         .beta2_power = reader.factor(each.beta2_power(), "a power of beta2"),
         .floats = reader.at_most(each.floats(), (1u << Replica::kFloatsMax) - 1,
                                  "what is kept of a block"),
         .lengths = {each.lengths().begin(), each.lengths().end()}});
    total = reader.at_most(total + each.length(), kParametersMax, "the number of parameters");
  }
  return replica;
}

Control get(const pb::Replicated& from, Reader&) { return Replicated{.version = from.version()}; }

Control get(const pb::Evaluated& from, Reader&) {
  return Evaluated{.version = from.version(),
                   .loss = from.loss(),
                   .accuracy = from.accuracy(),
                   .samples = from.samples()};
}

Control get(const pb::Farewell& from, Reader& reader) {
  return Farewell{.outcome = reader.one_of(from.outcome(), RunOutcome::kFailed, "outcome"),
                  .reason = reader.text(from.reason(), "the reason"),
                  .rejoin = from.again()};
}

Control get_any(const pb::Control& from, Reader& reader) {
  switch (from.message_case()) {
    case pb::Control::kHello:
      return get(from.hello(), reader);
    case pb::Control::kChallenge:
      return get(from.challenge(), reader);
    case pb::Control::kRefusal:
      return get(from.refusal(), reader);
    case pb::Control::kPlan:
      return get(from.plan(), reader);
    case pb::Control::kWelcome:
      return get(from.welcome(), reader);
    case pb::Control::kPlaceOffer:
      return get(from.place_offer(), reader);
    case pb::Control::kConnected:
      return get(from.connected(), reader);
    case pb::Control::kWantInitial:
      return get(from.want_initial(), reader);
    case pb::Control::kReady:
      return get(from.ready(), reader);
    case pb::Control::kDecision:
      return get(from.decision(), reader);
    case pb::Control::kStepClosed:
      return get(from.step_closed(), reader);
    case pb::Control::kStepReport:
      return get(from.step_report(), reader);
    case pb::Control::kEvaluated:
      return get(from.evaluated(), reader);
    case pb::Control::kFarewell:
      return get(from.farewell(), reader);
    case pb::Control::kArrived:
      return get(from.arrived(), reader);
    case pb::Control::kShare:
      return get(from.share(), reader);
    case pb::Control::kAbandoned:
      return get(from.abandoned(), reader);
    case pb::Control::kLearningRate:
      return get(from.learning_rate(), reader);
    case pb::Control::kGradientNorm:
      return get(from.gradient_norm(), reader);
    case pb::Control::kRelease:
      return get(from.release(), reader);
    case pb::Control::kRunLength:
      return get(from.run_length(), reader);
    case pb::Control::kCheckpointSaved:
      return get(from.checkpoint_saved(), reader);
    case pb::Control::kPullShare:
      return get(from.pull_share(), reader);
    case pb::Control::kStandBy:
      return get(from.stand_by(), reader);
    case pb::Control::kReplica:
      return get(from.replica(), reader);
    case pb::Control::kReplicated:
      return get(from.replicated(), reader);
    case pb::Control::MESSAGE_NOT_SET:
      break;
  }
  reader.fail("it is empty or of an unknown kind");
  return Ready{};
}

}  // namespace

Result<Control> decode_control(std::span<const std::byte> bytes) {
  pb::Control encoded;
  if (bytes.size() > kControlBytesMax ||
      !encoded.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return invalid_input("a control message cannot be read");
  }
  Reader reader;
  Control message = get_any(encoded, reader);
  if (reader.error()) return invalid_input("a control message is refused: " + *reader.error());
  return message;
}

}  // namespace drover

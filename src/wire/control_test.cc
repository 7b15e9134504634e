// Decoding an encoded control message gives the same message. Invalid messages are refused.
#include "wire/control.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "wire/limits.h"

namespace drover {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

template <typename Message>
void expect_survives(const Message& message) {
  const auto decoded = decode_control(bytes_of(encode_control(message)));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  ASSERT_TRUE(std::holds_alternative<Message>(decoded.value()));
  EXPECT_EQ(std::get<Message>(decoded.value()), message);
}

Plan sample_plan() {
  const Layout layout({{"a", 100'000, TensorKind::kTrained}, {"b", 17, TensorKind::kAveraged}});
  return Plan{.workers = 4,
              .steps = 1000,
              .evaluate_every = 10,
              .learning = {.optimizer = {.kind = OptimizerKind::kAdamW,
                                         .weight_decay = 0.01,
                                         .ema_decay = 0.999},
                           .schedule = {.kind = ScheduleKind::kCosine,
                                        .base = 0.3,
                                        .total_steps = 1000,
                                        .rule = RateRule::kSqrt},
                           .deterministic = true},
              .full_samples = 256,
              .tensors = layout.tensors(),
              .blocks = plan_blocks(layout, 2)};
}

TEST(Control, EveryMessageIsDecodedUnchanged) {
  expect_survives(Hello{.role = Role::kShard,
                        .index = 3,
                        .lane = Lane::kBulk,
                        .host = "here",
                        .pid = 42,
                        .address = "unix:x",
                        .tensors = {{"w", 12, TensorKind::kTrained, 0.5, 0.0}}});
  expect_survives(Hello{
      .learning = Learning{
          .optimizer = {.kind = OptimizerKind::kRmsProp, .rms_decay = 0.8, .rms_momentum = 0.1},
          .rate = 0.25}});
  expect_survives(Hello{.lane = Lane::kBulk, .mpi = MpiPlace{.rank = 0, .tag = 7}});
  expect_survives(Connected{});
  expect_survives(Connected{.mpi_rank = 0});
  expect_survives(Challenge{.nonce = std::string(kNonceBytes, '\0')});
  expect_survives(
      Challenge{.nonce = std::string(kNonceBytes, 'n'), .proof = std::string(kProofBytes, 'p')});
  expect_survives(Challenge{});
  expect_survives(Refusal{"no"});
  expect_survives(Refusal{.reason = "not now", .retry_later = true});
  expect_survives(sample_plan());
  Plan free = sample_plan();
  free.asynchronous = true;
  free.staleness = 0;
  expect_survives(free);
  Plan partial = sample_plan();
  partial.partial_pull = true;
  partial.push_grace = Duration(5'000);
  expect_survives(partial);
  Plan guarded = sample_plan();
  guarded.learning.guard = GuardRule::kNorm;
  guarded.learning.guard_factor = 3.5;
  expect_survives(guarded);
  Plan kept = sample_plan();
  kept.first_step = 200;
  kept.resume_from = "ck/step-0000000200";
  kept.checkpoint_every = 100;
  kept.checkpoint_dir = "ck";
  kept.tensors[0].shape = {1'000, 100};
  expect_survives(kept);
  Plan standing = sample_plan();
  standing.first_step = 7;
  standing.kept = KeptVersion{.version = 7, .incarnation = 3};
  standing.standby = true;
  standing.incarnation = uint64_t{1} << 60;
  expect_survives(standing);
  expect_survives(Hello{.role = Role::kStandby, .kept = {{7, 3}, {8, 4}}});
  expect_survives(StandBy{.address = "unix:x"});
  expect_survives(Replica{.kept = {9, 2},
                          .least = 8,
                          .blocks = {{.offset = 64,
                                      .length = 100,
                                      .updates = 5,
                                      .beta1_power = 0.5,
                                      .beta2_power = 0.25,
                                      .floats = 5,
                                      .lengths = {1.5F, 0.0F}}}});
  expect_survives(Replicated{.version = 9});
  expect_survives(CheckpointSaved{.version = 200,
                                  .file = "shard-3.safetensors",
                                  .bytes = uint64_t{1} << 33,
                                  .checksum = 0xfedcba98,
                                  .took = Duration(9'000),
                                  .error = "disk full"});
  expect_survives(Welcome{.blocks = sample_plan().blocks,
                          .partial_pull = true,
                          .pull_share = 0.9,
                          .pull_grace = Duration(7'000),
                          .first_step = 200});
  expect_survives(Welcome{.shards = {"unix:a", "unix:b"},
                          .blocks = sample_plan().blocks,
                          .steps = 5,
                          .evaluate_every = 2,
                          .asynchronous = true,
                          .workers = 3,
                          .batch = 64,
                          .seed = 7,
                          .wire_dtype = NumberType::kBfloat16,
                          .slow = {{.workers = {{3, 4}}, .factor = 4.0},
                                   {.steps = {{0, 7}}, .share = 0.5, .delay = Duration(9)}}});
  expect_survives(PlaceOffer{.worker = 7, .job = "model = \"mlp\"\n"});
  expect_survives(WantInitial{});
  expect_survives(Ready{});
  expect_survives(Decision{.step = 9,
                           .cutoff = 3,
                           .time_limit = Duration(1'500),
                           .at_least = 2,
                           .alive = {0, 2, 3},
                           .report_every = 2,
                           .noise_scale = 12.5});
  expect_survives(StepClosed{.step = 9,
                             .elapsed = Duration(100),
                             .closing = Duration(4),
                             .undecided = Duration(1),
                             .busy = Duration(3),
                             .arrivals = {{0, Duration(10), 9}, {1, Duration(20), 9}},
                             .late = {{2, Duration(500), 8}},
                             .refused = {{1, 7}},
                             .samples = 64,
                             .gradients = 7,
                             .signal = 0.25,
                             .noise = 3.0,
                             .block_counts = {{3, 1}, {4, 20}},
                             .digest = ~uint64_t{0},
                             .outliers = {{.worker = 3, .block = 2, .blocks = 5, .ratio = 99.5},
                                          {.worker = 4, .blocks = 1, .ratio = 7.0, .used = true}}});
  expect_survives(Arrived{.step = 9, .arrivals = {{3, Duration(10), 9}}});
  expect_survives(Share{.from = 4, .first = 64, .count = 32, .total = 256});
  expect_survives(Abandoned{.step = 4, .resumed = 6, .wasted = Duration(77)});
  expect_survives(StepReport{.step = 1,
                             .samples = 32,
                             .loss = 0.5,
                             .correct = 3,
                             .predictions = 32,
                             .compute = Duration(7),
                             .learning_rate = 0.0,
                             .blocks = 10,
                             .fresh = 8,
                             .staleness_sum = 5,
                             .staleness_max = 4,
                             .responses = {{Duration(10), true}, {Duration(400), false}}});
  expect_survives(LearningRate{.from = 12, .rate = 1e-4});
  expect_survives(LearningRate{
      .from = 12,
      .rate = 1e-4,
      .groups = {{.rate = 0.5, .optimizer = {.kind = OptimizerKind::kAdamW, .beta1 = 0.7}},
                 {.rate = 0.0, .optimizer = {.momentum = 0.0, .weight_decay = 0.25}}}});
  expect_survives(Hello{.tensors = {{.name = "w", .size = 12, .group = 3}}});
  expect_survives(GradientNorm{.step = 3, .squares = 0.25, .largest = 0.5});
  expect_survives(Release{.step = 3, .scale = 0.125, .used = true});
  expect_survives(Release{.step = 3, .scale = 1.0, .used = false});
  expect_survives(RunLength{.steps = 77});
  expect_survives(PullShare{.from = 12, .share = 0.875});
  expect_survives(Evaluated{.version = 100, .loss = 0.1, .accuracy = 0.9, .samples = 10'000});
  expect_survives(Farewell{.outcome = RunOutcome::kFailed, .reason = "shard 1 was lost"});
  expect_survives(
      Farewell{.outcome = RunOutcome::kFailed, .reason = "shard 1 was lost", .rejoin = true});
}

TEST(Control, RefusesInvalidLearningRates) {
  for (const double rate :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const Control& message :
         {Control(LearningRate{.from = 1, .rate = rate}),
          Control(StepReport{.learning_rate = rate}),
          Control(Hello{.learning = Learning{.rate = rate}}),
          Control(Hello{.tensors = {{"w", 12, TensorKind::kTrained, rate}}}),
          Control(Hello{.tensors = {{"w", 12, TensorKind::kTrained, 1.0, rate}}})}) {
      EXPECT_FALSE(decode_control(bytes_of(encode_control(message))).ok()) << rate;
    }
  }
}

TEST(Control, RefusesAShapeThatDoesNotMatchItsTensor) {
  const auto refused = [](std::vector<uint64_t> shape, uint64_t size) {
    const Hello hello{.tensors = {{.name = "w", .size = size, .shape = std::move(shape)}}};
    return !decode_control(bytes_of(encode_control(hello))).ok();
  };
  EXPECT_FALSE(refused({3, 4}, 12));
  EXPECT_FALSE(refused({}, 12));
  EXPECT_FALSE(refused({0, 4}, 0));
  EXPECT_TRUE(refused({3, 5}, 12));
  EXPECT_TRUE(refused({uint64_t{1} << 36, uint64_t{1} << 36, uint64_t{1} << 56}, 0));
  EXPECT_TRUE(refused(std::vector<uint64_t>(kDimensionsMax + 1, 1), 1));
}

TEST(Control, RefusesAGuardFactorOutOfRange) {
  Plan plan = sample_plan();
  plan.learning.guard = GuardRule::kRefuse;
  for (const double factor : {0.0, -1.0, 1e9, std::nan("")}) {
    plan.learning.guard_factor = factor;
    EXPECT_FALSE(decode_control(bytes_of(encode_control(plan))).ok()) << factor;
  }
}

TEST(Control, RefusesAPlanThatBeginsAfterItsEnd) {
  Plan plan = sample_plan();
  plan.first_step = plan.steps + 1;
  EXPECT_FALSE(decode_control(bytes_of(encode_control(plan))).ok());
}

TEST(Control, RefusesAPlanWithBlocksOutsideTheirTensor) {
  Plan plan = sample_plan();
  plan.blocks.blocks.back().offset += 1;
  const auto decoded = decode_control(bytes_of(encode_control(plan)));
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().kind, ErrorKind::kInvalidInput);
  plan = sample_plan();
  for (const uint32_t tensors : {0u, 1000u}) {
    plan.blocks.blocks[0].tensors = tensors;
    EXPECT_FALSE(decode_control(bytes_of(encode_control(plan))).ok()) << tensors;
  }
}

TEST(Control, RefusesInvalidSharesOfBlocks) {
  for (const double share : {0.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_FALSE(decode_control(bytes_of(encode_control(PullShare{.share = share}))).ok());
    EXPECT_FALSE(
        decode_control(bytes_of(encode_control(Welcome{.partial_pull = true, .pull_share = share})))
            .ok());
  }
  EXPECT_FALSE(decode_control(bytes_of(encode_control(StepReport{.blocks = 4, .fresh = 5}))).ok());
}

TEST(Control, RefusesInvalidSlowRules) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (const SlowRule& rule :
       {SlowRule{.workers = {{2, 1}}}, SlowRule{.steps = {{8, 7}}}, SlowRule{.share = 1.5},
        SlowRule{.share = -0.1}, SlowRule{.share = none}, SlowRule{.factor = 0.5},
        SlowRule{.factor = none}, SlowRule{.factor = 2 * SlowRule::kFactorMax},
        SlowRule{.delay = Duration(-1)}, SlowRule{.delay = SlowRule::kDelayMax + Duration(1)}}) {
    const auto decoded = decode_control(bytes_of(encode_control(Welcome{.slow = {rule}})));
    EXPECT_FALSE(decoded.ok()) << rule.share << " " << rule.factor << " " << rule.delay.count();
  }
}

TEST(Control, RefusesAShareOutsideItsStep) {
  for (const Share& share : {Share{.from = 0, .first = 0, .count = 0, .total = 8},
                             Share{.from = 0, .first = 6, .count = 3, .total = 8},
                             Share{.from = 0, .first = ~uint64_t{0}, .count = 3, .total = 8}}) {
    EXPECT_FALSE(decode_control(bytes_of(encode_control(share))).ok());
  }
}

TEST(Control, RefusesTimesAboveTheLimit) {
  // Sums of such times would overflow.
  for (const Duration none : {Duration(-1), Duration(std::numeric_limits<int64_t>::max()),
                              Duration(std::numeric_limits<int64_t>::min())}) {
    const std::vector<Control> messages = {Decision{.time_limit = none},
                                           StepClosed{.elapsed = none},
                                           StepClosed{.closing = none},
                                           StepClosed{.undecided = none},
                                           StepClosed{.busy = none},
                                           StepClosed{.arrivals = {{.run_time = none}}},
                                           StepClosed{.late = {{.run_time = none}}},
                                           Arrived{.arrivals = {{.run_time = none}}},
                                           Abandoned{.wasted = none},
                                           StepReport{.compute = none},
                                           StepReport{.responses = {{none, true}}},
                                           CheckpointSaved{.took = none},
                                           Plan{.push_grace = none},
                                           Welcome{.pull_grace = none}};
    for (const Control& message : messages) {
      const std::string sent = encode_control(message);
      EXPECT_FALSE(decode_control(std::as_bytes(std::span(sent))).ok()) << message.index();
    }
  }
}

TEST(Control, RefusesValuesAboveALimit) {
  Plan plan = sample_plan();
  plan.workers = kWorkersMax + 1;
  EXPECT_FALSE(decode_control(bytes_of(encode_control(plan))).ok());
  plan = sample_plan();
  plan.blocks.blocks[0].length = kBlockFloatsMax + 1;
  EXPECT_FALSE(decode_control(bytes_of(encode_control(plan))).ok());
  plan = sample_plan();
  plan.blocks.blocks[0].shard = 2;
  EXPECT_FALSE(decode_control(bytes_of(encode_control(plan))).ok());
  EXPECT_FALSE(
      decode_control(bytes_of(encode_control(Hello{.host = std::string(kTextBytesMax + 1, 'x')})))
          .ok());
  for (const MpiPlace& place : {MpiPlace{kMpiRankMax + 1, 1}, MpiPlace{1, kMpiTagMax + 1}})
    EXPECT_FALSE(decode_control(bytes_of(encode_control(Hello{.mpi = place}))).ok());
  EXPECT_FALSE(
      decode_control(bytes_of(encode_control(Connected{.mpi_rank = kMpiRankMax + 1}))).ok());
  EXPECT_FALSE(decode_control(bytes_of(encode_control(Hello{
                                  .tensors = {{"w", kParametersMax + 1, TensorKind::kTrained}}})))
                   .ok());
}

TEST(Control, DamagedBytesGiveAnErrorOrValuesWithinLimits) {
  // Decoding modified bytes gives an error or a message within limits. Sanitizers check the rest.
  const std::string good = encode_control(sample_plan());
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    std::string bad = good;
    for (uint64_t i = 0; i <= random() % 4; ++i)
      bad[random() % bad.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bad.resize(random() % bad.size());
    const auto decoded = decode_control(bytes_of(bad));
    if (!decoded.ok()) continue;
    if (const auto* plan = std::get_if<Plan>(&decoded.value())) {
      ASSERT_LE(plan->workers, kWorkersMax) << "seed " << seed;
      ASSERT_LE(plan->blocks.shards, kShardsMax) << "seed " << seed;
    }
  }
}

TEST(Control, RefusesNoncesAndProofsOfAnotherSize) {
  for (const size_t bytes : {size_t{1}, kNonceBytes - 1, kNonceBytes + 1, size_t{1000}}) {
    const std::string wrong(bytes, 'x');
    EXPECT_FALSE(decode_control(bytes_of(encode_control(Challenge{.nonce = wrong}))).ok()) << bytes;
    EXPECT_FALSE(decode_control(bytes_of(encode_control(Challenge{.proof = wrong}))).ok()) << bytes;
  }
}

TEST(Control, AChallengeIsWithinTheLimitForUnauthenticatedPeers) {
  const std::string largest = encode_control(
      Challenge{.nonce = std::string(kNonceBytes, 'n'), .proof = std::string(kProofBytes, 'p')});
  EXPECT_LE(largest.size(), kUnauthenticatedBytesMax);
}

TEST(Control, RefusesAnEmptyMessage) { EXPECT_FALSE(decode_control({}).ok()); }

bool is_taken(const Control& message) {
  return decode_control(bytes_of(encode_control(message))).ok();
}

// The largest allowed value of every limited field, and one more.
TEST(Control, AcceptsValuesAtTheirLimitAndNotBeyond) {
  struct Limit {
    const char* what;
    Control largest;
    Control too_large;
  };
  const auto hello = [](std::vector<TensorSpec> tensors) {
    return Hello{.tensors = std::move(tensors)};
  };
  const auto shape = [&](size_t dimensions) {
    return hello({{.name = "w", .size = 1, .shape = std::vector<uint64_t>(dimensions, 1)}});
  };
  const auto arrivals = [](size_t count) {
    return StepClosed{.arrivals = std::vector<StepClosed::Arrival>(count)};
  };
  const auto replica = [](const Replica::Block& block) { return Replica{.blocks = {block}}; };
  const uint32_t all_floats = (1u << Replica::kFloatsMax) - 1;
  const std::string text(kTextBytesMax, 'x');
  const std::string too_long = text + "x";
  const Duration longest(kDurationMaxNs);
  const size_t arrivals_max = size_t{kWorkersMax} * 64;
  const std::vector<Limit> limits = {
      {"text", Hello{.host = text}, Hello{.host = too_long}},
      {"address", Hello{.address = text}, Hello{.address = too_long}},
      {"index", Hello{.index = kWorkersMax}, Hello{.index = kWorkersMax + 1}},
      {"role", Hello{.role = Role::kStandby}, Hello{.role = static_cast<Role>(5)}},
      {"lane", Hello{.lane = Lane::kBulk}, Hello{.lane = static_cast<Lane>(2)}},
      {"kept", Hello{.kept = std::vector<KeptVersion>(kKeptMax)},
       Hello{.kept = std::vector<KeptVersion>(kKeptMax + 1)}},
      {"rank", Hello{.mpi = MpiPlace{kMpiRankMax, 1}}, Hello{.mpi = MpiPlace{kMpiRankMax + 1, 1}}},
      {"tag", Hello{.mpi = MpiPlace{1, kMpiTagMax}}, Hello{.mpi = MpiPlace{1, kMpiTagMax + 1}}},
      {"tensors", hello(std::vector<TensorSpec>(kTensorsMax)),
       hello(std::vector<TensorSpec>(kTensorsMax + 1))},
      {"parameters", hello({{"a", kParametersMax, {}}}),
       hello({{"a", kParametersMax, {}}, {"b", 1, {}}})},
      {"dimensions", shape(kDimensionsMax), shape(kDimensionsMax + 1)},
      {"tensor kind", hello({{"a", 1, TensorKind::kAveraged}}),
       hello({{"a", 1, static_cast<TensorKind>(2)}})},
      {"workers", Welcome{.workers = kWorkersMax}, Welcome{.workers = kWorkersMax + 1}},
      {"batch", Welcome{.batch = kSamplesMax}, Welcome{.batch = kSamplesMax + 1}},
      {"place", PlaceOffer{.worker = kWorkersMax}, PlaceOffer{.worker = kWorkersMax + 1}},
      {"its rank", Connected{.mpi_rank = kMpiRankMax}, Connected{.mpi_rank = kMpiRankMax + 1}},
      {"job", PlaceOffer{.job = text}, PlaceOffer{.job = too_long}},
      {"number type", Welcome{.wire_dtype = NumberType::kFloat16},
       Welcome{.wire_dtype = static_cast<NumberType>(3)}},
      {"slow rules", Welcome{.slow = std::vector<SlowRule>(kSlowRulesMax)},
       Welcome{.slow = std::vector<SlowRule>(kSlowRulesMax + 1)}},
      {"shards", Welcome{.shards = std::vector<std::string>(kShardsMax)},
       Welcome{.shards = std::vector<std::string>(kShardsMax + 1)}},
      {"alive", Decision{.alive = std::vector<WorkerId>(kWorkersMax)},
       Decision{.alive = std::vector<WorkerId>(kWorkersMax + 1)}},
      {"one alive", Decision{.alive = {kWorkersMax}}, Decision{.alive = {kWorkersMax + 1}}},
      {"time", Decision{.time_limit = longest}, Decision{.time_limit = longest + Duration(1)}},
      {"noise", Decision{.noise_scale = 0.0}, Decision{.noise_scale = -1e-9}},
      {"arrivals", arrivals(arrivals_max), arrivals(arrivals_max + 1)},
      {"arrived", StepClosed{.arrivals = {{.worker = kWorkersMax}}},
       StepClosed{.arrivals = {{.worker = kWorkersMax + 1}}}},
      {"contributors", StepClosed{.block_counts = {{kWorkersMax, kBlocksMax}}},
       StepClosed{.block_counts = {{kWorkersMax + 1, kBlocksMax}}}},
      {"counted blocks", StepClosed{.block_counts = {{1, kBlocksMax}}},
       StepClosed{.block_counts = {{1, kBlocksMax + 1}}}},
      {"refused worker", StepClosed{.refused = {{kWorkersMax, 0}}},
       StepClosed{.refused = {{kWorkersMax + 1, 0}}}},
      {"refused block", StepClosed{.refused = {{0, kBlocksMax}}},
       StepClosed{.refused = {{0, kBlocksMax + 1}}}},
      {"outlier", StepClosed{.outliers = {{.worker = kWorkersMax}}},
       StepClosed{.outliers = {{.worker = kWorkersMax + 1}}}},
      {"its block", StepClosed{.outliers = {{.block = kBlocksMax}}},
       StepClosed{.outliers = {{.block = kBlocksMax + 1}}}},
      {"its blocks", StepClosed{.outliers = {{.blocks = kBlocksMax}}},
       StepClosed{.outliers = {{.blocks = kBlocksMax + 1}}}},
      {"share", Share{.count = kSamplesMax, .total = 1u << 30},
       Share{.count = kSamplesMax + 1, .total = 1u << 30}},
      {"end of a share", Share{.first = 4, .count = 4, .total = 8},
       Share{.first = 5, .count = 4, .total = 8}},
      {"samples", StepReport{.samples = kSamplesMax}, StepReport{.samples = kSamplesMax + 1}},
      {"blocks", StepReport{.blocks = kBlocksMax}, StepReport{.blocks = kBlocksMax + 1}},
      {"fresh", StepReport{.blocks = 4, .fresh = 4}, StepReport{.blocks = 4, .fresh = 5}},
      {"responses", StepReport{.responses = std::vector<PullResponse>(kShardsMax)},
       StepReport{.responses = std::vector<PullResponse>(kShardsMax + 1)}},
      {"pull share", PullShare{.share = 1.0}, PullShare{.share = 1.0 + 1e-9}},
      {"rate", LearningRate{.rate = 0.0}, LearningRate{.rate = -1e-9}},
      {"rate of a group", LearningRate{.groups = {{.rate = 0.0}}},
       LearningRate{.groups = {{.rate = -1e-9}}}},
      {"beta1", LearningRate{.groups = {{.optimizer = {.beta1 = 0.999}}}},
       LearningRate{.groups = {{.optimizer = {.beta1 = 1.0}}}}},
      {"beta2", LearningRate{.groups = {{.optimizer = {.beta2 = 0.0}}}},
       LearningRate{.groups = {{.optimizer = {.beta2 = -0.1}}}}},
      {"momentum", LearningRate{.groups = {{.optimizer = {.momentum = 0.0}}}},
       LearningRate{.groups = {{.optimizer = {.momentum = -0.1}}}}},
      {"weight decay", LearningRate{.groups = {{.optimizer = {.weight_decay = 0.0}}}},
       LearningRate{.groups = {{.optimizer = {.weight_decay = -0.1}}}}},
      {"group", Hello{.tensors = {{.name = "w", .size = 1, .group = kGroupsMax}}},
       Hello{.tensors = {{.name = "w", .size = 1, .group = kGroupsMax + 1}}}},
      {"norm", GradientNorm{.squares = 0.0}, GradientNorm{.squares = -1.0}},
      {"scale", Release{.scale = 0.0}, Release{.scale = -1.0}},
      {"length", RunLength{.steps = kEndless}, RunLength{.steps = kEndless + 1}},
      {"file", CheckpointSaved{.file = text}, CheckpointSaved{.file = too_long}},
      {"error", CheckpointSaved{.error = text}, CheckpointSaved{.error = too_long}},
      {"standby", StandBy{.address = text}, StandBy{.address = too_long}},
      {"refusal", Refusal{.reason = text}, Refusal{.reason = too_long}},
      {"farewell", Farewell{.reason = text}, Farewell{.reason = too_long}},
      {"offset", replica({.offset = kParametersMax, .length = 1, .floats = 1}),
       replica({.offset = kParametersMax + 1, .length = 1, .floats = 1})},
      {"length", replica({.length = kBlockFloatsMax, .floats = 1}),
       replica({.length = kBlockFloatsMax + 1, .floats = 1})},
      {"floats", replica({.length = 1, .floats = all_floats}),
       replica({.length = 1, .floats = all_floats + 2})},
      {"parameters of a block", replica({.length = 1, .floats = 1}),
       replica({.length = 1, .floats = 2})},
      {"length above none", replica({.length = 1, .floats = 1}),
       replica({.length = 0, .floats = 1})},
  };
  for (const Limit& limit : limits) {
    EXPECT_TRUE(is_taken(limit.largest)) << limit.what;
    EXPECT_FALSE(is_taken(limit.too_large)) << limit.what;
  }
}

TEST(Control, AcceptsAPlanAtItsLimits) {
  const auto is_taken_with = [](const auto& change) {
    Plan plan = sample_plan();
    change(plan);
    return is_taken(plan);
  };
  EXPECT_TRUE(is_taken_with([](Plan& plan) { plan.workers = kWorkersMax; }));
  EXPECT_TRUE(is_taken_with([](Plan& plan) { plan.first_step = plan.steps; }));
  EXPECT_FALSE(is_taken_with([](Plan& plan) { plan.blocks.shards = kShardsMax + 1; }));
  EXPECT_TRUE(is_taken_with([](Plan& plan) { plan.blocks.shards = kShardsMax; }));
  EXPECT_FALSE(is_taken_with([](Plan& plan) { plan.blocks.blocks[0].length = 0; }));
  EXPECT_FALSE(is_taken_with(
      [](Plan& plan) { plan.learning.schedule.kind = static_cast<ScheduleKind>(200); }));
  EXPECT_FALSE(
      is_taken_with([](Plan& plan) { plan.learning.guard = static_cast<GuardRule>(200); }));
  for (const double factor : {kGuardFactorMin, kGuardFactorMax}) {
    EXPECT_TRUE(is_taken_with([&](Plan& plan) {
      plan.learning.guard = GuardRule::kRefuse;
      plan.learning.guard_factor = factor;
    })) << factor;
  }
}

TEST(Control, RefusesAMessageAboveTheSizeLimit) {
  const std::string name(kTextBytesMax, 'x');
  const std::vector<TensorSpec> few(kControlBytesMax / kTextBytesMax / 2, {name, 1, {}});
  const std::vector<TensorSpec> many(kControlBytesMax / kTextBytesMax + 1, {name, 1, {}});
  EXPECT_TRUE(is_taken(Hello{.tensors = few}));
  EXPECT_FALSE(is_taken(Hello{.tensors = many}));
}

}  // namespace
}  // namespace drover

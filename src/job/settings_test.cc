// The list of settings covers every field of a Job, with consistent names. validate() refuses jobs
// that cannot be run.
#include "job/settings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/slowness.h"
#include "core/test_text.h"
#include "job/job_file.h"
#include "job/validation.h"
#include "wire/limits.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A valid, finished job of which no field has its default. EveryFieldDiffers proves that.
Job job_without_defaults() {
  Job job;
  job.task = {.model = "mlp",
              .data = "generated",
              .data_dir = "d",
              .seed = 7,
              .generated_samples = 8,
              .micro_batch = 5,
              .partition = DataPartition::kLabel};
  job.cluster.workers = 9;
  job.cluster.shards = 3;
  job.steps = 123;
  job.batch = 17;
  job.learning.optimizer = {.kind = OptimizerKind::kAdamW,
                            .momentum = 0.1,
                            .rms_decay = 0.2,
                            .rms_momentum = 0.3,
                            .beta1 = 0.4,
                            .beta2 = 0.5,
                            .epsilon = 0.6,
                            .weight_decay = 0.7,
                            .ema_decay = 0.8};
  job.learning.schedule = {.kind = ScheduleKind::kStep,
                           .base = 0.5,
                           .warmup_steps = 4,
                           .decay_every = 5,
                           .decay_factor = 0.6,
                           .floor = 0.07,
                           .total_steps = 123,
                           .rule = RateRule::kSqrt};
  job.waiting.policy = "ecdf:half-life=3";
  job.waiting.objective = Objective::kRate;
  job.waiting.policy_warmup = 3;
  job.waiting.min_contributors = 2;
  job.waiting.max_wait = std::chrono::milliseconds(1'500);
  job.waiting.min_inclusion = 0.25;
  job.waiting.pull = 0.875;
  job.waiting.pull_grace = std::chrono::milliseconds(5);
  job.waiting.push_grace = std::chrono::microseconds(1'500);
  job.waiting.stragglers = StragglerRule::kFinish;
  job.waiting.live = true;
  job.waiting.balance = true;
  job.waiting.balance_least = 0.5;
  job.waiting.balance_most = 2.5;
  job.waiting.probe = 0.125;
  job.learning.guard = GuardRule::kRefuse;
  job.learning.guard_factor = 7.5;
  job.learning.deterministic = true;
  job.record.evaluate_every = 6;
  job.cluster.slow = {parse_slow_rule("worker=8,factor=2").value()};
  job.record.stop_at = Target{TargetKind::kLoss, 0.25};
  job.cluster.transport = Transport::kTcp;
  job.cluster.wire_dtype = NumberType::kBfloat16;
  job.cluster.listen = "localhost:1";
  job.cluster.tls = "keys";
  job.cluster.insecure = true;
  job.cluster.workers_max = 300;
  job.cluster.window = 65'536;
  job.record.run_file = "r";
  job.record.save_model = "s";
  job.record.checkpoint = "c";
  job.record.checkpoint_every = 7;
  job.record.keep = 9;
  job.record.resume = "d";
  job.cluster.supervise = true;
  job.cluster.standby = true;
  return job;
}

// The bindings stop compiling when a struct gets a new field: then add it here, to
// job_without_defaults() and to job_settings().
TEST(Settings, EveryFieldDiffersInTheJobWithoutDefaults) {
  const Job default_job;
  const Job changed = job_without_defaults();
  const auto& [task, steps, batch, learning, waiting, cluster, record] = changed;
  const auto& [optimizer, schedule, deterministic, guard, guard_factor] = learning;
  const auto& [policy, objective, policy_warmup, min_contributors, max_wait, min_inclusion, live,
               balance, balance_least, balance_most, pull, pull_grace, push_grace, stragglers,
               probe] = waiting;
  const auto& [workers, workers_max, shards, slow, transport, wire_dtype, listen, tls, insecure,
               window, supervise, standby] = cluster;
  const auto& [evaluate_every, stop_at, run_file, save_model, checkpoint, checkpoint_every, keep,
               resume] = record;
  const auto& [model, data, data_dir, seed, generated_samples, micro_batch, partition] = task;
  const auto& [kind, momentum, rms_decay, rms_momentum, beta1, beta2, epsilon, weight_decay,
               ema_decay] = optimizer;
  const auto& [schedule_kind, base, warmup_steps, decay_every, decay_factor, floor, total_steps,
               rule] = schedule;
  EXPECT_NE(model, default_job.task.model);
  EXPECT_NE(data, default_job.task.data);
  EXPECT_NE(data_dir, default_job.task.data_dir);
  EXPECT_NE(seed, default_job.task.seed);
  EXPECT_NE(generated_samples, default_job.task.generated_samples);
  EXPECT_NE(micro_batch, default_job.task.micro_batch);
  EXPECT_NE(partition, default_job.task.partition);
  EXPECT_NE(stragglers, default_job.waiting.stragglers);
  EXPECT_NE(live, default_job.waiting.live);
  EXPECT_NE(pull, default_job.waiting.pull);
  EXPECT_NE(pull_grace, default_job.waiting.pull_grace);
  EXPECT_NE(push_grace, default_job.waiting.push_grace);
  EXPECT_NE(balance, default_job.waiting.balance);
  EXPECT_NE(balance_least, default_job.waiting.balance_least);
  EXPECT_NE(balance_most, default_job.waiting.balance_most);
  EXPECT_NE(probe, default_job.waiting.probe);
  EXPECT_NE(guard, default_job.learning.guard);
  EXPECT_NE(guard_factor, default_job.learning.guard_factor);
  EXPECT_NE(workers, default_job.cluster.workers);
  EXPECT_NE(supervise, default_job.cluster.supervise);
  EXPECT_NE(standby, default_job.cluster.standby);
  EXPECT_NE(workers_max, default_job.cluster.workers_max);
  EXPECT_NE(shards, default_job.cluster.shards);
  EXPECT_NE(steps, default_job.steps);
  EXPECT_NE(batch, default_job.batch);
  EXPECT_NE(kind, default_job.learning.optimizer.kind);
  EXPECT_NE(momentum, default_job.learning.optimizer.momentum);
  EXPECT_NE(rms_decay, default_job.learning.optimizer.rms_decay);
  EXPECT_NE(rms_momentum, default_job.learning.optimizer.rms_momentum);
  EXPECT_NE(beta1, default_job.learning.optimizer.beta1);
  EXPECT_NE(beta2, default_job.learning.optimizer.beta2);
  EXPECT_NE(epsilon, default_job.learning.optimizer.epsilon);
  EXPECT_NE(weight_decay, default_job.learning.optimizer.weight_decay);
  EXPECT_NE(ema_decay, default_job.learning.optimizer.ema_decay);
  EXPECT_NE(schedule_kind, default_job.learning.schedule.kind);
  EXPECT_NE(base, default_job.learning.schedule.base);
  EXPECT_NE(warmup_steps, default_job.learning.schedule.warmup_steps);
  EXPECT_NE(decay_every, default_job.learning.schedule.decay_every);
  EXPECT_NE(decay_factor, default_job.learning.schedule.decay_factor);
  EXPECT_NE(floor, default_job.learning.schedule.floor);
  EXPECT_NE(total_steps, default_job.learning.schedule.total_steps);
  EXPECT_NE(rule, default_job.learning.schedule.rule);
  EXPECT_NE(deterministic, default_job.learning.deterministic);
  EXPECT_NE(evaluate_every, default_job.record.evaluate_every);
  EXPECT_NE(stop_at, default_job.record.stop_at);
  EXPECT_NE(slow, default_job.cluster.slow);
  EXPECT_NE(transport, default_job.cluster.transport);
  EXPECT_NE(wire_dtype, default_job.cluster.wire_dtype);
  EXPECT_NE(listen, default_job.cluster.listen);
  EXPECT_NE(tls, default_job.cluster.tls);
  EXPECT_NE(insecure, default_job.cluster.insecure);
  EXPECT_NE(window, default_job.cluster.window);
  EXPECT_NE(run_file, default_job.record.run_file);
  EXPECT_NE(save_model, default_job.record.save_model);
  EXPECT_NE(checkpoint, default_job.record.checkpoint);
  EXPECT_NE(checkpoint_every, default_job.record.checkpoint_every);
  EXPECT_NE(keep, default_job.record.keep);
  EXPECT_NE(resume, default_job.record.resume);
  EXPECT_NE(objective, default_job.waiting.objective);
  EXPECT_NE(policy_warmup, default_job.waiting.policy_warmup);
  EXPECT_NE(min_contributors, default_job.waiting.min_contributors);
  EXPECT_NE(max_wait, default_job.waiting.max_wait);
  EXPECT_NE(min_inclusion, default_job.waiting.min_inclusion);
  EXPECT_NE(policy, default_job.waiting.policy);
}

TEST(Settings, CarryEveryFieldOfAJob) {
  Job copy;
  for (const Setting& setting : job_settings()) {
    const Status status = setting.set(copy, setting.get(job_without_defaults()));
    ASSERT_TRUE(status.ok()) << setting.key << ": " << status.error().message;
  }
  finish(copy);
  EXPECT_EQ(copy, job_without_defaults());
}

TEST(Settings, EachChangesWhatItReadsAndNothingElse) {
  for (const Setting& setting : job_settings()) {
    SCOPED_TRACE(setting.key);
    Job job;
    ASSERT_TRUE(setting.set(job, setting.get(job_without_defaults())).ok());
    for (const Setting& other : job_settings()) {
      EXPECT_EQ(other.get(job) != other.get(Job{}), &other == &setting) << other.key;
    }
  }
}

TEST(Settings, HaveUniqueKeysAndKindsThatFitTheirValues) {
  std::set<std::string_view> keys;
  for (const Setting& setting : job_settings()) {
    SCOPED_TRACE(setting.key);
    EXPECT_EQ(setting.get(Job{}).index(), static_cast<size_t>(setting.kind));
    EXPECT_TRUE(keys.insert(setting.key).second);
    EXPECT_EQ(setting.key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"),
              std::string_view::npos)
        << "the flag would not have the same name";
    EXPECT_FALSE(setting.help.empty());
    EXPECT_LE(setting.help.size(), 90u);
    EXPECT_EQ(find_setting(setting.key), &setting);
  }
  EXPECT_EQ(find_setting("weight-decay"), nullptr);
}

TEST(Settings, HaveOneNameInJobFilesAndOnCommandLines) {
  EXPECT_EQ(flag_of(*find_setting("weight_decay")), "--weight-decay");
  EXPECT_EQ(key_and_flag(*find_setting("weight_decay")), "weight_decay (--weight-decay)");
  EXPECT_EQ(key_and_flag(*find_setting("beta1")), "beta1") << "it has no flag";
}

TEST(Settings, AreListedByGroup) {
  std::set<SettingGroup> before;
  SettingGroup current = job_settings().front().group;
  for (const Setting& setting : job_settings()) {
    if (setting.group == current) continue;
    before.insert(current);
    current = setting.group;
    EXPECT_FALSE(before.contains(current)) << setting.key << " is apart from its group";
  }
}

TEST(Settings, FinishEndsTheScheduleWithTheRun) {
  Job job;
  job.steps = 77;
  finish(job);
  EXPECT_EQ(job.learning.schedule.total_steps, 77u);
}

std::string error_of(const Job& job) {
  const Status status = validate(job);
  EXPECT_FALSE(status.ok());
  if (status.ok()) return "";
  EXPECT_EQ(status.error().kind, ErrorKind::kInvalidInput);
  return status.error().message;
}

TEST(Validate, AcceptsDefaultsAndNonDefaults) {
  EXPECT_TRUE(validate(Job{}).ok());
  Job changed = job_without_defaults();
  changed.cluster.standby = false;
  EXPECT_TRUE(validate(changed).ok());
}

TEST(Validate, ChecksLimits) {
  const auto says = [](auto change, const auto& matcher) {
    Job job;
    change(job);
    EXPECT_THAT(error_of(job), matcher);
  };
  says([](Job& job) { job.cluster.workers_max = job.cluster.workers - 1; },
       mentions("workers_max", "--workers-max", 4, 3));
  says([](Job& job) { job.cluster.workers = 0; }, mentions("workers", "--workers", 1, 10000, 0));
  says([](Job& job) { job.cluster.workers = kWorkersMax + 1; },
       mentions("workers", "--workers", 1, 10000, 10001));
  says([](Job& job) { job.cluster.shards = 0; }, mentions("shards", "--shards", 1, 1000, 0));
  says([](Job& job) { job.cluster.shards = kShardsMax + 1; },
       mentions("shards", "--shards", 1, 1000, 1001));
  says([](Job& job) { job.steps = 0; }, mentions("steps", "--steps", 1, 0));
  says([](Job& job) { job.batch = 0; }, mentions("batch", "--batch", 1, 0));
  says([](Job& job) { job.task.generated_samples = 0; }, mentions("generated_samples"));
  says([](Job& job) { job.task.model = ""; }, mentions("model", "--model"));
  says([](Job& job) { job.task.seed = kSeedMax + 1; }, mentions("seed", "--seed"));
  says([](Job& job) { job.learning.schedule.base = 0.0; }, mentions("lr", "--lr", 0, 1000));
  says([](Job& job) { job.learning.schedule.base = -0.1; }, mentions("lr", "-0.1"));
  says([](Job& job) { job.learning.schedule.base = std::nan(""); }, mentions("lr", "nan"));
  says([](Job& job) { job.learning.schedule.base = HUGE_VAL; }, mentions("lr", "inf"));
  says([](Job& job) { job.learning.optimizer.momentum = 1.0; },
       mentions("momentum", "--momentum", 0, 1));
  says([](Job& job) { job.learning.optimizer.momentum = -0.1; }, mentions("momentum", "-0.1"));
  says([](Job& job) { job.learning.optimizer.ema_decay = 1.0; }, mentions("ema", "--ema"));
  says([](Job& job) { job.learning.optimizer.epsilon = 0.0; }, mentions("epsilon"));
  says([](Job& job) { job.waiting.policy = "snyc"; },
       AllOf(mentions("policy", "--policy", "snyc"), proposes("sync")));
  says([](Job& job) { job.waiting.min_contributors = 0; },
       mentions("min_contributors", "--min-contributors", 0));
  says([](Job& job) { job.waiting.probe = -0.1; }, mentions("probe", "--probe", "-0.1"));
  says([](Job& job) { job.waiting.live = true; }, mentions("live", "--live", "sync"));
  says([](Job& job) { job.cluster.standby = true, job.waiting.policy = "async"; },
       mentions("standby", "--standby", "async", "--supervise", "--checkpoint"));
  says([](Job& job) { job.cluster.standby = true, job.waiting.pull = 0.5; },
       mentions("standby", "--standby", "--pull", "--supervise"));
  says([](Job& job) { job.waiting.live = true, job.waiting.policy = "async"; },
       mentions("live", "--live", "async"));
  says([](Job& job) { job.waiting.balance = true, job.waiting.policy = "ssp"; },
       mentions("balance", "--balance", "ssp"));
  says([](Job& job) { job.waiting.balance = true, job.batch = 4; },
       mentions("balance_least", 4, "0.25"));
  says([](Job& job) { job.waiting.balance_most = 0.5; }, mentions("balance_most", "0.5"));
  says([](Job& job) { job.waiting.min_inclusion = 1.5; },
       mentions("min_inclusion", "--min-inclusion", "1.5"));
  says([](Job& job) { job.waiting.max_wait = std::chrono::hours(25); },
       mentions("max_wait", "--max-wait", "10s", "500ms", "90000s"));
  says([](Job& job) { job.cluster.listen = "nowhere"; }, mentions("nowhere", "HOST:PORT"));
  says([](Job& job) { job.cluster.transport = Transport::kMpi, job.cluster.supervise = true; },
       mentions("supervise", "--supervise", "mpi", "--checkpoint", "--resume"));
  says([](Job& job) { job.cluster.listen = ":80"; }, mentions(":80", "HOST:PORT"));
  says([](Job& job) { job.cluster.listen = "host:65536"; }, mentions("host:65536", "HOST:PORT"));
  says(
      [](Job& job) {
        job.record.stop_at = Target{TargetKind::kAccuracy, 97.0};
      },
      mentions("stop_at", "--stop-at", "accuracy=97"));
  says([](Job& job) { job.cluster.slow.resize(kSlowRulesMax + 1); },
       mentions("slow", "--slow", 1000, 1001));
}

TEST(Validate, ChecksCombinationsOfSettings) {
  Job job;
  job.learning.schedule.kind = ScheduleKind::kStep;
  EXPECT_THAT(error_of(job), mentions("--lr-decay-every"));
  job.learning.schedule.decay_every = 10;
  EXPECT_TRUE(validate(job).ok());

  job.learning.schedule.floor = 2 * job.learning.schedule.base;
  EXPECT_THAT(error_of(job), mentions("--lr-floor"));
  job.learning.schedule.floor = job.learning.schedule.base;
  EXPECT_TRUE(validate(job).ok());

  job.cluster.slow = {parse_slow_rule("worker=3-4,factor=2").value()};
  EXPECT_THAT(error_of(job), mentions("slow", "--slow", "worker=3-4,factor=2", "4 workers", 0, 3));
  job.cluster.workers = 5;
  EXPECT_TRUE(validate(job).ok());

  job.waiting.min_contributors = 6;
  EXPECT_THAT(error_of(job), mentions("min_contributors", "--min-contributors", 5, 6));
  job.waiting.min_contributors = 5;
  EXPECT_TRUE(validate(job).ok());

  job.record.stop_at = Target{TargetKind::kLoss, 0.2};
  EXPECT_THAT(error_of(job), mentions("evaluate_every", "--evaluate-every", "--stop-at", 0));
  job.record.evaluate_every = 10;
  EXPECT_TRUE(validate(job).ok());

  for (const char* policy : {"async", "ssp:2"}) {
    job.waiting.policy = policy;
    job.learning.deterministic = true;
    EXPECT_THAT(error_of(job), mentions("deterministic", "--deterministic", policy));
    job.learning.deterministic = false;
    EXPECT_TRUE(validate(job).ok()) << policy;
    for (const double share : {0.9, kPullAuto}) {
      job.waiting.pull = share;
      EXPECT_THAT(error_of(job), mentions("pull", "--pull", policy));
    }
    job.waiting.pull = 1.0;
    job.waiting.pull_grace = std::chrono::milliseconds(5);  // without effect
    EXPECT_TRUE(validate(job).ok()) << policy;
  }
}

TEST(Settings, LimitSharesOfBlocksAndGraces) {
  const auto set = [](std::string_view key, const std::string& text) {
    for (const Setting& setting : job_settings()) {
      if (setting.key != key) continue;
      Job job;
      const Status status = setting.set(job, SettingValue(text));
      return status ? std::get<std::string>(setting.get(job)) : status.error().message;
    }
    return std::string("no such setting");
  };
  EXPECT_EQ(set("pull", "0.9"), "0.9");
  EXPECT_EQ(set("pull", "1"), "1");
  EXPECT_EQ(set("pull", "auto"), "auto");
  for (const char* text : {"0", "-0.5", "1.5", "nan", "most", "90%", ""})
    EXPECT_THAT(set("pull", text), AllOf(mentions(0, 1, "auto"), HasSubstr(text)));
  EXPECT_EQ(set("pull_grace", "5ms"), "5ms");
  EXPECT_EQ(set("push_grace", "0s"), set("push_grace", "0ms"));
  for (const char* text : {"-5ms", "5", "two days", "100000s"})
    EXPECT_THAT(set("push_grace", text), mentions(text, "5ms"));
}

TEST(Settings, AGuardNeedsEnoughWorkers) {
  Job job;
  job.learning.guard = GuardRule::kNorm;
  for (const uint32_t workers : {1u, 2u}) {
    job.cluster.workers = workers;
    EXPECT_THAT(error_of(job), mentions("guard", "--guard", 3, workers));
    job.learning.guard = GuardRule::kOff;
    EXPECT_TRUE(validate(job).ok());
    job.learning.guard = GuardRule::kRefuse;
  }
  job.cluster.workers = 3;
  EXPECT_TRUE(validate(job).ok());
  job.learning.guard_factor = 0.5;
  EXPECT_THAT(error_of(job), mentions("guard_factor", "0.5"));
}

}  // namespace
}  // namespace drover

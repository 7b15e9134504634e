// A written job file parses to the same job. Errors have the place, the key and the expected value.
#include "job/job_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>

#include "core/slowness.h"
#include "core/test_text.h"
#include "job/settings.h"
#include "job/toml_complaint.h"
#include "job/validation.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Job job_from(std::string_view text) {
  Result<Job> job = parse_job(text, "job.toml");
  EXPECT_TRUE(job.ok()) << job.error().message;
  return job.ok() ? job.value() : Job{};
}

std::string error_of(std::string_view text) {
  const Result<Job> job = parse_job(text, "job.toml");
  EXPECT_FALSE(job.ok()) << text << "\nshould be refused";
  if (job.ok()) return "";
  EXPECT_EQ(job.error().kind, ErrorKind::kInvalidInput);
  return job.error().message;
}

Job finished(Job job) {
  finish(job);
  return job;
}

TEST(JobFile, EmptyMeansTheDefaults) { EXPECT_EQ(job_from(""), finished(Job{})); }

TEST(JobFile, ReadsKeys) {
  const Job job = job_from(R"(
    workers = 8
    deterministic = true
    transport = "tcp"
    slow = ["worker=3,factor=4", "share=0.05,delay=200ms"]
    optimizer = "adam"
    schedule = "cosine"
    lr = 1
  )");
  Job expected;
  expected.cluster.workers = 8;
  expected.learning.deterministic = true;
  expected.cluster.transport = Transport::kTcp;
  expected.cluster.slow = {parse_slow_rule("worker=3,factor=4").value(),
                           parse_slow_rule("share=0.05,delay=200ms").value()};
  expected.learning.optimizer.kind = OptimizerKind::kAdam;
  expected.learning.schedule.kind = ScheduleKind::kCosine;
  expected.learning.schedule.base = 1.0;
  EXPECT_EQ(job, finished(expected));
  EXPECT_EQ(job.learning.schedule.total_steps, job.steps);
}

TEST(JobFile, ReportsThePlaceAndTheMistake) {
  const auto says = [](std::string_view text, const auto& matcher) {
    EXPECT_THAT(error_of(text), matcher) << text;
  };
  // Not TOML.
  says("workers = 4\nbatch = \n", HasSubstr("job.toml:2:"));
  says("workers = 4\nworkers = 5\n", HasSubstr("job.toml:2:"));
  says("name = \"\xff\"\n", HasSubstr("job.toml:1:"));
  // Unknown keys.
  says("seed = 1\nworkrs = 4\n", AllOf(mentions("job.toml:2:1", "workrs"), proposes("workers")));
  says("momentun = 0.5\n", AllOf(mentions("job.toml:1:1", "momentun"), proposes("momentum")));
  says("total_steps = 1\n", mentions("total_steps"));
  // Tables.
  says("[optimiser]\nmomentum = 0.5\n", mentions("job.toml:2:1", "optimiser.momentum", "top"));
  says("[schedule]\nworkers = 1\n", mentions("job.toml:2:1", "schedule.workers", "workers"));
  says("[schedule.deep]\nlr = 1\n", mentions("schedule.deep"));
  says("zzzzzzzzzz = 1\n", mentions("job.toml:1:1", "zzzzzzzzzz"));
  // Values of the wrong type.
  says("workers = \"four\"\n", mentions("job.toml:1:11", "workers", "four"));
  says("workers = 4.5\n", mentions("workers", "4.5"));
  says("workers = [4]\n", mentions("job.toml:1:11", "workers"));
  says("model = 3\n", mentions("model", 3));
  says("deterministic = 1\n", mentions("deterministic", "true", "false", 1));
  says("slow = \"worker=1,factor=2\"\n", mentions("job.toml:1:8", "slow"));
  says("slow = [1]\n", mentions("job.toml:1:8", "slow"));
  says("lr = \"big\"\n", mentions("job.toml:1:6", "lr", "big"));
  says("[workers]\n", mentions("job.toml:1:1", "workers"));
  // Values out of range.
  says("seed = 1\nworkers = 0\n", mentions("job.toml:2:11", "workers", 1, 10000, 0));
  says("workers = -4\n", mentions("workers", -4));
  says("workers = 10001\n", mentions("workers", 1, 10000, 10001));
  says("shards = 1001\n", mentions("shards", 1, 1000, 1001));
  says("batch = 0\n", mentions("batch", 1, 0));
  says("lr = 0.0\n", mentions("lr", 0, 1000));
  says("lr = inf\n", mentions("lr", 0, 1000, "inf"));
  says("lr = nan\n", mentions("lr", 0, 1000, "nan"));
  says("momentum = 1.0\n", mentions("job.toml:1:12", "momentum", 0, 1));
  says("optimizer = \"adm\"\n", AllOf(mentions("optimizer", "adm"), proposes("adam")));
  says("policy = \"synk\"\n", AllOf(mentions("policy", "synk"), proposes("sync")));
  says("slow = [\"factr=2\"]\n", AllOf(mentions("slow", "factr=2", "factr"), proposes("factor")));
}

TEST(JobFile, NamesTheSuccessorOfARenamedOrRemovedKey) {
  EXPECT_THAT(error_of("decay_every = 5\n"),
              AllOf(mentions("job.toml:1:1", "decay_every"), HasSubstr("is now lr_decay_every")));
  EXPECT_THAT(error_of("decide_every = 4\n"), HasSubstr("was removed"));
  // Older job files have two tables.
  EXPECT_THAT(error_of("[optimizer]\nema_decay = 0.5\n"),
              AllOf(mentions("job.toml:2:1", "optimizer.ema_decay"), HasSubstr("is now ema")));
  EXPECT_THAT(error_of("[schedule]\nfloor = 0.1\n"),
              AllOf(mentions("job.toml:2:1", "schedule.floor"), HasSubstr("is now lr_floor")));
}

TEST(JobFile, ReportsTheFirstOfSeveralMistakes) {
  // By name, batch would come before workers.
  EXPECT_THAT(error_of("workers = 0\nbatch = 0\n"),
              AllOf(mentions("job.toml:1:11", "workers"), Not(mentions("batch"))));
}

TEST(JobFile, LeavesCombinationsOfValuesToValidate) {
  EXPECT_FALSE(validate(job_from("schedule = \"step\"\n")).ok());
}

std::string random_text(std::mt19937_64& random) {
  static constexpr std::string_view kLetters = "ab \"'\\\n\t#=[]{}.\r\x01\x7f/~";
  std::string text;
  for (uint64_t left = random() % 12; left > 0; --left) {
    text += random() % 8 == 0 ? "\u00e9" : std::string(1, kLetters[random() % kLetters.size()]);
  }
  return text;
}

Job random_job(std::mt19937_64& random) {
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1.0p-53; };
  const auto small = [&] { return std::pow(10.0, -12.0 * unit()); };
  Job job;
  job.task.model = "m" + random_text(random);
  job.task.data = "d" + random_text(random);
  job.task.data_dir = random_text(random);
  job.task.seed = random() >> (1 + random() % 63);
  job.task.generated_samples = 1 + random() % kGeneratedSamplesMax;
  job.cluster.workers = 1 + static_cast<uint32_t>(random() % 10'000);
  job.cluster.shards = 1 + static_cast<uint32_t>(random() % 1'000);
  job.steps = 1 + random() % kStepsMax;
  job.batch = 1 + static_cast<uint32_t>(random() % 100'000);
  job.learning.optimizer = {.kind = static_cast<OptimizerKind>(random() % 6),
                            .momentum = unit(),
                            .rms_decay = unit(),
                            .rms_momentum = unit(),
                            .beta1 = unit(),
                            .beta2 = unit(),
                            .epsilon = small(),
                            .weight_decay = small(),
                            .ema_decay = unit()};
  job.learning.schedule = {.kind = static_cast<ScheduleKind>(random() % 3),
                           .base = 1000.0 * small(),
                           .warmup_steps = random() % kStepsMax,
                           .decay_every = random() % kStepsMax,
                           .decay_factor = small(),
                           .floor = random() % 2 ? small() : 0.0,
                           .total_steps = 0,
                           .rule = static_cast<RateRule>(random() % 4)};
  job.learning.deterministic = random() % 2;
  job.record.evaluate_every = random() % 100;
  for (uint64_t left = random() % 4; left > 0; --left) {
    SlowRule rule;
    if (random() % 2) rule.workers = {0, random() % 10};
    rule.share = unit();
    rule.factor = 1.0 + unit();
    rule.delay = Duration(random() % 1'000'000'000);
    job.cluster.slow.push_back(rule);
  }
  job.cluster.transport = static_cast<Transport>(random() % 5);
  job.cluster.listen = "host:" + std::to_string(random() % 65'536);
  job.cluster.tls = random_text(random);
  job.cluster.insecure = random() % 2;
  job.record.run_file = random_text(random);
  job.record.save_model = random_text(random);
  return finished(job);
}

TEST(JobFile, WrittenFilesParseToTheSameJob) {
  for (uint64_t seed = 0; seed < 1'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Job job = random_job(random);
    const std::string text = to_toml(job);
    const Result<Job> again = parse_job(text, "job.toml");
    ASSERT_TRUE(again.ok()) << again.error().message << "\n" << text;
    ASSERT_EQ(again.value(), job) << text;
  }
}

TEST(JobFile, WritesEveryKeyWithItsHelp) {
  const std::string text = to_toml(Job{});
  for (const Setting& setting : job_settings()) {
    EXPECT_NE(text.find(std::string(setting.key) + " = "), std::string::npos) << setting.key;
    EXPECT_NE(text.find("# " + std::string(setting.help)), std::string::npos) << setting.key;
  }
}

TEST(JobFile, IsReadFromDisk) {
  const std::string path = testing::TempDir() + "job_file_test.toml";
  std::ofstream(path) << to_toml(Job{}) << "\n";
  const Result<Job> job = read_job_file(path);
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job.value(), finished(Job{}));

  std::ofstream(path) << "workers = 0\n";
  EXPECT_THAT(read_job_file(path).error(),
              is_error(ErrorKind::kInvalidInput, path + ":1:11", "workers", 0));

  std::ofstream(path) << std::string(kTomlFileBytesMax + 1, '#');
  EXPECT_THAT(read_job_file(path).error(),
              is_error(ErrorKind::kInvalidInput, path, kTomlFileBytesMax));
  std::remove(path.c_str());

  const Result<Job> missing = read_job_file(path);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error(), is_error(ErrorKind::kSystem, path, std::strerror(ENOENT)));
  const Result<Job> folder = read_job_file(testing::TempDir());
  ASSERT_FALSE(folder.ok());
  EXPECT_THAT(folder.error(),
              is_error(ErrorKind::kSystem, testing::TempDir(), std::strerror(EISDIR)));
}

}  // namespace
}  // namespace drover

// Job files must read back as they were written, and every mistake in one must be answered with its
// place, its key and what would be right.
#include "job/job_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "core/slowness.h"
#include "job/settings.h"
#include "job/toml_complaint.h"
#include "job/validation.h"

namespace drover {
namespace {

Job job_from(std::string_view text) {
  Result<Job> job = parse_job(text, "job.toml");
  EXPECT_TRUE(job.ok()) << job.error().message;
  return job.ok() ? job.value() : Job{};
}

std::string complaint_about(std::string_view text) {
  const Result<Job> job = parse_job(text, "job.toml");
  EXPECT_FALSE(job.ok()) << text << "\nshould be refused";
  return job.ok() ? "" : job.error().message;
}

Job finished(Job job) {
  finish(job);
  return job;
}

TEST(JobFile, SaysNothingAndMeansTheDefaults) { EXPECT_EQ(job_from(""), finished(Job{})); }

TEST(JobFile, ReadsKeysAndTables) {
  const Job job = job_from(R"(
    workers = 8
    deterministic = true
    transport = "tcp"
    slow = ["worker=3,factor=4", "share=0.05,delay=200ms"]
    optimizer.kind = "adam"
    [schedule]
    kind = "cosine"
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

TEST(JobFile, SaysWhereAndWhatIsWrong) {
  const auto says = [](std::string_view text, std::string_view part) {
    const std::string complaint = complaint_about(text);
    EXPECT_NE(complaint.find(part), std::string::npos) << complaint << "\nlacks " << part;
  };
  // Not TOML.
  says("workers = 4\nbatch = \n", "job.toml:2:");
  says("workers = 4\nworkers = 5\n", "job.toml:2:");
  says("name = \"\xff\"\n", "job.toml:1:");
  // Keys nobody knows.
  says("seed = 1\nworkrs = 4\n", "job.toml:2:1: unknown key 'workrs'. Did you mean 'workers'?");
  says("[optimizer]\nmomentun = 0.5\n",
       "job.toml:2:1: unknown key 'optimizer.momentun'. Did you mean 'momentum'?");
  says("[optimiser]\nmomentum = 0.5\n",
       "job.toml:1:2: unknown key 'optimiser'. Did you mean 'optimizer'?");
  says("lr = 0.1\n", "job.toml:1:1: unknown key 'lr': 'lr' belongs in [schedule]");
  says("[schedule]\nworkers = 1\n", "'workers' belongs at the top of the file");
  says("[schedule]\ntotal_steps = 1\n", "unknown key 'schedule.total_steps'");
  says("[schedule.deep]\nlr = 1\n", "unknown key 'schedule.deep'");
  says("zzzzzzzzzz = 1\n", "job.toml:1:1: unknown key 'zzzzzzzzzz'.");
  // Values of the wrong kind.
  says("workers = \"four\"\n",
       "job.toml:1:11: workers: expected a whole number, found text: 'four'");
  says("workers = 4.5\n", "workers: expected a whole number, found a number with a fraction: 4.5");
  says("workers = [4]\n", "workers: expected a whole number, found a list");
  says("model = 3\n", "model: expected text, found a whole number: 3");
  says("deterministic = 1\n", "deterministic: expected true or false, found a whole number: 1");
  says("slow = \"worker=1,factor=2\"\n", "slow: expected a list of texts, found text");
  says("slow = [1]\n", "slow: expected a list of texts, found a list");
  says("[schedule]\nlr = \"big\"\n",
       "job.toml:2:6: schedule.lr: expected a number, found text: 'big'");
  says("optimizer = \"adam\"\n", "optimizer: expected a table [optimizer], found text: 'adam'");
  says("[workers]\n", "workers: expected a whole number, found a table");
  // Values out of range.
  says("seed = 1\nworkers = 0\n", "job.toml:2:11: workers: must be from 1 to 10000, not 0");
  says("workers = -4\n", "workers: must not be negative: -4");
  says("workers = 10001\n", "workers: must be from 1 to 10000, not 10001");
  says("shards = 1001\n", "shards: must be from 1 to 1000, not 1001");
  says("batch = 0\n", "batch: must be from 1");
  says("[schedule]\nlr = 0.0\n", "schedule.lr: must be more than 0 and at most 1000, not 0");
  says("[schedule]\nlr = inf\n", "schedule.lr: must be more than 0");
  says("[schedule]\nlr = nan\n", "schedule.lr: must be more than 0");
  says("[optimizer]\nmomentum = 1.0\n",
       "job.toml:2:12: optimizer.momentum: must be at least 0 and less than 1");
  says("[optimizer]\nkind = \"adm\"\n",
       "optimizer.kind: unknown optimizer 'adm'. Did you mean 'adam'?");
  says("policy = \"synk\"\n", "policy: there is no policy 'synk'");
  says("slow = [\"factr=2\"]\n",
       "slow: slow rule 'factr=2': unknown key 'factr'. Did you mean 'factor'?");
}

TEST(JobFile, TellsTheFirstOfSeveralMistakes) {
  // By name, batch would come before workers.
  EXPECT_NE(complaint_about("workers = 0\nbatch = 0\n").find(":1:11: workers"), std::string::npos);
}

TEST(JobFile, LeavesItToValidateWhatValuesSayTogether) {
  EXPECT_FALSE(validate(job_from("[schedule]\nkind = \"step\"\n")).ok());
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

TEST(JobFile, ReadsWhatItWrites) {
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

TEST(JobFile, WritesEveryKeyWithItsMeaning) {
  const std::string text = to_toml(Job{});
  for (const Setting& setting : job_settings()) {
    EXPECT_NE(text.find(std::string(name_of(setting)) + " = "), std::string::npos) << setting.key;
    EXPECT_NE(text.find("# " + std::string(setting.help)), std::string::npos) << setting.key;
  }
  EXPECT_NE(text.find("[optimizer]"), std::string::npos);
  EXPECT_NE(text.find("[schedule]"), std::string::npos);
}

TEST(JobFile, IsReadFromDisk) {
  const std::string path = testing::TempDir() + "job_file_test.toml";
  std::ofstream(path) << to_toml(Job{}) << "\n";
  const Result<Job> job = read_job_file(path);
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job.value(), finished(Job{}));

  std::ofstream(path) << "workers = 0\n";
  EXPECT_NE(read_job_file(path).error().message.find(path + ":1:11: workers"), std::string::npos);

  std::ofstream(path) << std::string(kTomlFileBytesMax + 1, '#');
  EXPECT_NE(read_job_file(path).error().message.find("larger than"), std::string::npos);
  std::remove(path.c_str());

  const Result<Job> missing = read_job_file(path);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("No such file"), std::string::npos)
      << missing.error().message;
  const Result<Job> folder = read_job_file(testing::TempDir());
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(folder.error().message.find("Is a directory"), std::string::npos)
      << folder.error().message;
}

}  // namespace
}  // namespace drover

// Flags must override the job file, which must override the defaults. An error about a wrong
// command line must name the correction.
#include "cli/train_options.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "core/slowness.h"
#include "core/test_text.h"
#include "job/job_file.h"
#include "job/settings.h"
#include "job/validation.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// An error must name these: the flag, the value, what was meant. Its words may change.
// `drover train ...` as main() would see it.
class TrainOptionsTest : public testing::Test {
 protected:
  void SetUp() override {
    app_.require_subcommand(1);
    CLI::App* train = app_.add_subcommand("train", "train a model");
    app_.add_subcommand("export", "write a run as CSV");
    add_train_options(*train, options_);
  }
  void TearDown() override {
    if (!path_.empty()) std::remove(path_.c_str());
  }

  void parse(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());  // as CLI11 wants vectors
    app_.parse(words);
  }

  Job job(std::vector<std::string> words) {
    words.insert(words.begin(), "train");
    parse(words);
    Result<Job> result = job_of(options_);
    EXPECT_TRUE(result.ok()) << result.error().message;
    return result.ok() ? result.value() : Job{};
  }

  // The error of the command line, whether parsing or job_of() finds it.
  std::string error_of(const std::vector<std::string>& words) {
    options_ = {};
    try {
      parse(words);
    } catch (const CLI::ParseError& trouble) {
      return explain_parse_error(app_, trouble);
    }
    const Result<Job> result = job_of(options_);
    EXPECT_FALSE(result.ok()) << "should be refused";
    return result.ok() ? "" : result.error().message;
  }

  std::string job_file(const std::string& text) {
    path_ = testing::TempDir() + "train_options_test_" +
            testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml";
    std::ofstream(path_) << text;
    return path_;
  }

  CLI::App app_{"drover"};
  TrainOptions options_;
  std::string path_;
};

TEST_F(TrainOptionsTest, NoFlagsMeanTheDefaults) {
  Job defaults;
  finish(defaults);
  EXPECT_EQ(job({}), defaults);
  EXPECT_TRUE(options_.job_file.empty());
  EXPECT_FALSE(options_.json || options_.quiet || options_.print_job);
}

TEST_F(TrainOptionsTest, EveryFlagIsRead) {
  const Job got = job({"--workers",
                       "8",
                       "--workers-max=300",
                       "--shards=3",
                       "--steps",
                       "50",
                       "--batch",
                       "16",
                       "--model",
                       "mlp",
                       "--data",
                       "generated",
                       "--data-dir",
                       "/d",
                       "--optimizer",
                       "adamw",
                       "--lr",
                       "0.5",
                       "--momentum",
                       "0.1",
                       "--weight-decay",
                       "0.01",
                       "--schedule",
                       "step",
                       "--lr-warmup",
                       "5",
                       "--lr-decay-every",
                       "10",
                       "--lr-decay-factor",
                       "0.5",
                       "--ema",
                       "0.99",
                       "--policy",
                       "sync",
                       "--seed",
                       "7",
                       "--deterministic",
                       "--evaluate-every",
                       "20",
                       "--slow",
                       "worker=3,factor=4",
                       "--slow",
                       "share=0.05,delay=200ms",
                       "--transport",
                       "tcp",
                       "--listen",
                       "0.0.0.0:9",
                       "--tls",
                       "keys",
                       "--insecure",
                       "--set",
                       "window=65536",
                       "--run-file",
                       "r.db",
                       "--save-model",
                       "m.bin",
                       "--checkpoint",
                       "ck",
                       "--checkpoint-every",
                       "50",
                       "--keep",
                       "2",
                       "--resume",
                       "before",
                       "--supervise",
                       "--standby=false",  // not with --pull
                       "--generated-samples",
                       "99",
                       "--set",
                       "beta1=0.2",
                       "--set",
                       "beta2=0.3",
                       "--set",
                       "epsilon=1e-3",
                       "--set",
                       "rms_decay=0.4",
                       "--set",
                       "rms_momentum=0.6",
                       "--lr-floor",
                       "0.25",
                       "--lr-rule",
                       "adascale",
                       "--objective",
                       "rate",
                       "--policy-warmup",
                       "30",
                       "--min-contributors",
                       "4",
                       "--max-wait",
                       "2.5s",
                       "--min-inclusion",
                       "0.1",
                       "--stop-at",
                       "loss=0.5",
                       "--partition",
                       "random",
                       "--micro-batch",
                       "4",
                       "--stragglers",
                       "finish",
                       "--live",
                       "--no-live",
                       "--balance",
                       "--set",
                       "balance_least=0.25",
                       "--set",
                       "balance_most=2",
                       "--pull",
                       "0.9",
                       "--pull-grace",
                       "5ms",
                       "--push-grace",
                       "2ms",
                       "--probe",
                       "0.02",
                       "--guard",
                       "refuse",
                       "--set",
                       "guard_factor=7",
                       "--wire-dtype",
                       "bfloat16"});
  Job expected;
  expected.task = {"mlp", "generated", "/d", 7, 99, 4, DataPartition::kRandom};
  expected.cluster.workers = 8;
  expected.cluster.shards = 3;
  expected.steps = 50;
  expected.batch = 16;
  expected.learning.optimizer = {.kind = OptimizerKind::kAdamW,
                                 .momentum = 0.1,
                                 .rms_decay = 0.4,
                                 .rms_momentum = 0.6,
                                 .beta1 = 0.2,
                                 .beta2 = 0.3,
                                 .epsilon = 1e-3,
                                 .weight_decay = 0.01,
                                 .ema_decay = 0.99};
  expected.learning.schedule = {ScheduleKind::kStep, 0.5, 5, 10, 0.5, 0.25, 50,
                                RateRule::kAdaScale};
  expected.waiting.objective = Objective::kRate;
  expected.waiting.policy_warmup = 30;
  expected.waiting.min_contributors = 4;
  expected.waiting.max_wait = std::chrono::milliseconds(2'500);
  expected.waiting.min_inclusion = 0.1;
  expected.waiting.stragglers = StragglerRule::kFinish;
  expected.waiting.balance = true;
  expected.waiting.balance_least = 0.25;
  expected.waiting.balance_most = 2.0;
  expected.waiting.pull = 0.9;
  expected.waiting.pull_grace = std::chrono::milliseconds(5);
  expected.waiting.push_grace = std::chrono::milliseconds(2);
  expected.waiting.probe = 0.02;
  expected.learning.guard = GuardRule::kRefuse;
  expected.learning.guard_factor = 7.0;
  expected.learning.deterministic = true;
  expected.record.evaluate_every = 20;
  expected.record.stop_at = Target{TargetKind::kLoss, 0.5};
  expected.cluster.slow = {parse_slow_rule("worker=3,factor=4").value(),
                           parse_slow_rule("share=0.05,delay=200ms").value()};
  expected.cluster.transport = Transport::kTcp;
  expected.cluster.wire_dtype = NumberType::kBfloat16;
  expected.cluster.listen = "0.0.0.0:9";
  expected.cluster.tls = "keys";
  expected.cluster.insecure = true;
  expected.cluster.window = 65'536;
  expected.record.run_file = "r.db";
  expected.record.save_model = "m.bin";
  expected.cluster.workers_max = 300;
  expected.record.checkpoint = "ck";
  expected.record.checkpoint_every = 50;
  expected.record.keep = 2;
  expected.record.resume = "before";
  expected.cluster.supervise = true;
  EXPECT_EQ(got, expected);
  EXPECT_EQ(options_.flags.size(), job_settings().size()) << "a flag is missing above";
}

TEST_F(TrainOptionsTest, FlagsOverrideTheFileAndTheFileOverridesDefaults) {
  const std::string path = job_file(
      "workers = 8\nbatch = 16\ndeterministic = true\nsteps = 10\nslow = [\"factor=2\"]\n");
  const Job got = job({path, "--workers", "3", "--no-deterministic", "--slow", "factor=3",
                       "--steps", "20", "--schedule", "cosine"});
  EXPECT_EQ(got.cluster.workers, 3u);
  EXPECT_EQ(got.batch, 16u);
  EXPECT_EQ(got.cluster.shards, Job{}.cluster.shards);
  EXPECT_FALSE(got.learning.deterministic);
  ASSERT_EQ(got.cluster.slow.size(), 1u);
  EXPECT_EQ(got.cluster.slow[0].factor, 3.0);
  EXPECT_EQ(got.learning.schedule.total_steps, 20u);
}

// An experiment passes its cells' settings as command words.
TEST_F(TrainOptionsTest, CommandWordsGiveTheSameJob) {
  const Job first = job({"--policy", "static:k=3", "--deterministic", "--lr", "0.1", "--slow",
                         "worker=1,factor=2", "--slow", "worker=2,factor=3", "--data-dir", "",
                         "--stop-at", "", "--run-file", "my run.db"});
  const std::vector<std::string> words = command_words(options_.flags);
  options_ = {};
  EXPECT_EQ(job(words), first);
  options_ = {};
  EXPECT_FALSE(job({"--no-deterministic"}).learning.deterministic);
  EXPECT_EQ(command_words(options_.flags), std::vector<std::string>{"--no-deterministic"});
}

TEST_F(TrainOptionsTest, ASlowRuleDoesNotSwallowTheJobFile) {
  const std::string path = job_file("workers = 8\n");
  EXPECT_EQ(job({"--slow", "factor=2", path}).cluster.workers, 8u);
}

TEST_F(TrainOptionsTest, ReadsSwitchesThatAreNotSettings) {
  job({"--json", "--quiet", "--print-job"});
  EXPECT_TRUE(options_.json && options_.quiet && options_.print_job);
}

TEST_F(TrainOptionsTest, PrintedJobGivesTheSameJob) {
  const Job first = job({"--workers", "9", "--slow", "worker=8,delay=1ms", "--lr", "0.3"});
  const Result<Job> again = parse_job(to_toml(first), "printed");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again.value(), first);
}

TEST_F(TrainOptionsTest, NamesTheFlagThatIsWrong) {
  EXPECT_THAT(error_of({"train", "--workers", "0"}), mentions("--workers", "10000", "0"));
  EXPECT_THAT(error_of({"train", "--workers", "four"}), mentions("--workers", "four"));
  EXPECT_THAT(error_of({"train", "--workers", "-1"}), mentions("--workers", "-1"));
  EXPECT_THAT(error_of({"train", "--workers", "99999999999999999999"}),
              mentions("--workers", "99999999999999999999"));
  EXPECT_THAT(error_of({"train", "--lr", "-1"}), mentions("--lr", "1000", "-1"));
  EXPECT_THAT(error_of({"train", "--lr", "0.1x"}), mentions("--lr", "0.1x"));
  EXPECT_THAT(error_of({"train", "--policy", "snyc"}),
              AllOf(mentions("--policy", "snyc"), proposes("sync")));
  EXPECT_THAT(error_of({"train", "--transport", "upd"}), mentions("--transport", "upd"));
  EXPECT_THAT(error_of({"train", "--slow", "worker=9,factor=2"}), mentions("--slow"));
  EXPECT_THAT(error_of({"train", "--schedule", "step"}), mentions("--lr-decay-every"));
  EXPECT_THAT(error_of({"train", "--workers"}), mentions("--workers"));
  EXPECT_THAT(error_of({"train", "--workers", "1", "--workers", "2"}), mentions("--workers"));
}

TEST_F(TrainOptionsTest, NamesTheNearestOptionOrCommand) {
  EXPECT_THAT(error_of({"train", "--workrs", "4"}), mentions("--workrs", "--workers"));
  EXPECT_THAT(error_of({"train", "--workrs=4"}), mentions("--workrs", "--workers"));
  EXPECT_EQ(error_of({"train", "--qqqqqqqqqqq"})
                .find("--", error_of({"train", "--qqqqqqqqqqq"}).find("--") + 2),
            std::string::npos)
      << "nothing is near it";
  EXPECT_THAT(error_of({"trian"}), mentions("trian", "train"));
  EXPECT_THAT(error_of({"trian", "--workers", "4"}), mentions("trian", "train"));
  EXPECT_THAT(error_of({"train", "a.toml", "b.toml"}), mentions("b.toml"));
  EXPECT_THAT(error_of({"--hlep"}), mentions("--hlep", "--help"));
}

TEST_F(TrainOptionsTest, ErrorsInTheJobFileNameTheLine) {
  const std::string path = job_file("seed = 1\nworkrs = 4\n");
  EXPECT_THAT(error_of({"train", path}),
              AllOf(mentions(path + ":2:1", "workrs"), proposes("workers")));
  EXPECT_THAT(error_of({"train", "/no/such/job.toml"}), mentions("/no/such/job.toml"));
}

bool lists(const std::string& help, const std::string& flag) {
  for (const char* end : {" ", ",", "\n"}) {
    if (help.find(" " + flag + end) != std::string::npos) return true;
  }
  return false;
}

TEST_F(TrainOptionsTest, HelpListsTheMainFlagsAndHelpAllEveryFlag) {
  CLI::App* const train = app_.get_subcommand("train");
  const std::string help = train->help();
  EXPECT_THROW(parse({"train", "--help-all"}), CLI::CallForHelp);
  const std::string all = train->help();
  for (const Setting& setting : job_settings()) {
    const std::string flag = flag_of(setting);
    EXPECT_EQ(lists(help, flag), setting.listing == Listing::kMain) << flag;
    EXPECT_EQ(lists(all, flag), setting.listing != Listing::kJobFile) << flag;
  }
  EXPECT_FALSE(lists(help, "--rank"));
  EXPECT_TRUE(lists(all, "--rank"));
  // CLI11 writes "COUNT=4" or "COUNT [4]", depending on its version.
  const size_t workers = help.find("--workers COUNT");
  ASSERT_NE(workers, std::string::npos) << help;
  EXPECT_NE(help.substr(workers, 20).find('4'), std::string::npos) << help;
}

TEST_F(TrainOptionsTest, NamesTheSuccessorOfARenamedOrRemovedFlag) {
  EXPECT_THAT(error_of({"train", "--warmup", "5"}), HasSubstr("--warmup is now --lr-warmup"));
  EXPECT_THAT(error_of({"train", "--decay-every=5"}),
              HasSubstr("--decay-every is now --lr-decay-every"));
  EXPECT_THAT(error_of({"train", "--decide-every", "5"}), mentions("--decide-every", "removed"));
  EXPECT_THAT(error_of({"train", "--beta1", "0.5"}), HasSubstr("--set beta1=VALUE"));
}

TEST_F(TrainOptionsTest, SetRefusesWhatAJobFileWouldRefuse) {
  EXPECT_THAT(error_of({"train", "--set", "beta1"}), mentions("--set", "KEY=VALUE", "beta1"));
  EXPECT_THAT(error_of({"train", "--set", "beta=0.5"}),
              AllOf(mentions("--set", "beta"), proposes("beta1")));
  EXPECT_THAT(error_of({"train", "--set", "beta1=2"}), mentions("beta1", 0, 1, 2));
  EXPECT_THAT(error_of({"train", "--set", "beta1=0.5", "--set", "beta1=0.6"}),
              mentions("beta1", "more than once"));
  EXPECT_THAT(error_of({"train", "--set", "schedule.floor=1"}), HasSubstr("is now lr_floor"));
}

TEST(JobFlags, OtherCommandsTakeSomeSettingsWithTheSameChecks) {
  CLI::App app{"replay"};
  GivenFlags flags;
  const auto choose = [](const Setting& setting) {
    return setting.key == "policy_warmup" || setting.key == "probe" || setting.key == "live";
  };
  add_job_flags(app, flags, choose);
  std::vector<std::string> words = {"--live", "0.25", "--probe", "7",
                                    "--policy-warmup"};  // backwards
  app.parse(words);
  Job job;
  ASSERT_TRUE(set_flags(flags, job).ok());
  EXPECT_EQ(job.waiting.policy_warmup, 7U);
  EXPECT_EQ(job.waiting.probe, 0.25);
  EXPECT_TRUE(job.waiting.live) << "set_flags() does not validate the job";
  flags["probe"] = {"1.5"};
  const Status refused = set_flags(flags, job);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error(), is_error(ErrorKind::kInvalidInput, "--probe", "1.5"));
  words = {"1", "--lr"};
  EXPECT_THROW(app.parse(words), CLI::ParseError) << "it was not chosen";
}

}  // namespace
}  // namespace drover

// End-to-end tests of runs: their results, records and output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/slowness.h"
#include "core/test_text.h"
#include "support/drover_run.h"

namespace drover::testing_support {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

RunReader read_run(const std::string& path) {
  Result<RunReader> reader = RunReader::open(path);
  if (!reader) ADD_FAILURE() << reader.error().message;
  DROVER_CHECK(reader.ok());
  return std::move(reader).value();
}

// Trains in `folder` and expects the run to complete.
RunReader train(const TemporaryFolder& folder, const std::string& name, const Words& words) {
  const Outcome outcome = drover(Words{"train", "--run-file", name} + words, folder.path());
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  RunReader reader = read_run(folder.file(name));
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kCompleted) << outcome.err;
  return reader;
}

// --- reproducibility

uint64_t digest_of(const RunReader& reader) {
  const uint64_t digest = reader.end().value().parameters_digest;
  EXPECT_NE(digest, 0U);
  return digest;
}

TEST(Deterministic, OneSeedGivesIdenticalResults) {
  const TemporaryFolder folder;
  const auto digest = [&](const std::string& name, const Words& words) {
    return digest_of(train(folder, name,
                           small_job() +
                               Words{"--deterministic", "--workers", "3", "--steps", "25",
                                     "--batch", "8", "--optimizer", "adam", "--lr", "0.01"} +
                               words));
  };
  const uint64_t first = digest("first.db", {"--seed", "1", "--shards", "2"});
  EXPECT_EQ(digest("again.db", {"--seed", "1", "--shards", "2"}), first);
  EXPECT_EQ(digest("shards1.db", {"--seed", "1", "--shards", "1"}), first) << "one shard";
  EXPECT_EQ(digest("shards5.db", {"--seed", "1", "--shards", "5"}), first) << "five shards";
  for (const char* const transport : {"shm", "uds", "tcp"}) {
    EXPECT_EQ(digest(std::string(transport) + ".db", {"--seed", "1", "--transport", transport}),
              first)
        << transport;
  }
  EXPECT_NE(digest("short.db", {"--seed", "1", "--transport", "uds", "--wire-dtype", "bfloat16"}),
            first)
      << "gradients have another number type in messages";
  EXPECT_EQ(digest("slow.db", {"--seed", "1", "--slow", "share=0.3,delay=10ms"}), first)
      << "a slow worker changes nothing";
  EXPECT_NE(digest("other.db", {"--seed", "2"}), first) << "another seed";
}

// --- output

TEST(Json, IsOneObjectOnTheLastLine) {
  const TemporaryFolder folder;
  const Outcome outcome = drover(Words{"train", "--run-file", "a.db", "--json", "--steps", "12",
                                       "--batch", "8", "--workers", "2"} +
                                     small_job(),
                                 folder.path());
  ASSERT_EQ(outcome.status(), 0) << outcome.err;
  const nlohmann::json json = last_line_json(outcome.out);
  ASSERT_TRUE(json.is_object()) << outcome.out;
  EXPECT_EQ(json.at("steps"), 12);
  EXPECT_GT(json.at("seconds").get<double>(), 0.0);
  EXPECT_GT(json.at("steps_per_second").get<double>(), 0.0);
  EXPECT_DOUBLE_EQ(json.at("samples_per_second").get<double>(),
                   16.0 * json.at("steps_per_second").get<double>());
  EXPECT_GT(json.at("loss").get<double>(), 0.0);
  EXPECT_GE(json.at("test_accuracy").get<double>(), 0.0);
  EXPECT_LE(json.at("test_accuracy").get<double>(), 1.0);
  EXPECT_EQ(json.at("gradients_used"), 24);
  EXPECT_EQ(json.at("gradients_late"), 0);
  EXPECT_EQ(json.at("run_file"), "a.db");
  EXPECT_EQ(json.at("outcome"), "completed");

  // The run file has the same values.
  const Outcome again = drover({"runs", "a.db", "--json"}, folder.path());
  EXPECT_EQ(again.status(), 0) << again.err;
  EXPECT_EQ(last_line_json(again.out), json);
  EXPECT_THAT(again.err, IsEmpty());
}

TEST(Runs, SummarisesARunFromItsFile) {
  const TemporaryFolder folder;
  const Outcome trained = drover(
      Words{"train", "--run-file", "a.db", "--steps", "5", "--batch", "8", "--quiet"} + small_job(),
      folder.path());
  ASSERT_EQ(trained.status(), 0) << trained.err;
  EXPECT_THAT(trained.err, IsEmpty()) << "--quiet prints nothing";
  const Outcome shown = drover({"runs", "a.db"}, folder.path());
  EXPECT_EQ(shown.status(), 0) << shown.err;
  EXPECT_THAT(shown.out, mentions("completed", "mlp", "generated", 4, 2));
  EXPECT_THAT(trained.out, HasSubstr(shown.out)) << "train prints the same summary";
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a.db"});
}

TEST(RunFile, HasAUniqueNameByDefault) {
  const TemporaryFolder folder;
  const Words words =
      Words{"train", "--steps", "2", "--batch", "2", "--workers", "1"} + small_job();
  ASSERT_EQ(drover(words, folder.path()).status(), 0);
  ASSERT_EQ(drover(words, folder.path()).status(), 0);
  const auto names = names_in(folder.file("runs"));
  EXPECT_EQ(names.size(), 2U) << "the second run does not overwrite the first";
  for (const std::string& name : names) EXPECT_THAT(name, HasSubstr("-mlp-generated"));
}

TEST(RunFile, KeepsTheJobFile) {
  const TemporaryFolder folder;
  const RunReader first = train(folder, "first.db",
                                small_job("logistic") + Words{"--deterministic", "--steps", "10",
                                                              "--batch", "4", "--seed", "77"});
  std::ofstream(folder.file("job.toml")) << first.header().value().job;
  const Outcome again = drover({"train", "job.toml", "--run-file", "again.db"}, folder.path());
  ASSERT_EQ(again.status(), 0) << again.err;
  EXPECT_EQ(digest_of(read_run(folder.file("again.db"))), digest_of(first));
}

TEST(PrintJob, CanBeReadAsTheSameJob) {
  const TemporaryFolder folder;
  const Outcome first =
      drover(Words{"train", "--print-job", "--workers", "7", "--lr", "0.0125", "--optimizer",
                   "adamw", "--schedule", "cosine", "--slow", "worker=3,factor=4", "--slow",
                   "share=0.05,delay=200ms", "--deterministic", "--ema", "0.99"} +
                 small_job(),
             folder.path());
  ASSERT_EQ(first.status(), 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("workers = 7"));
  std::ofstream(folder.file("job.toml")) << first.out;
  const Outcome again = drover({"train", "job.toml", "--print-job"}, folder.path());
  ASSERT_EQ(again.status(), 0) << again.err;
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"job.toml"}) << "no run was started";
}

TEST(PrintJob, FlagsOverrideTheFile) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("job.toml")) << "workers = 7\nsteps = 30\noptimizer = \"adam\"\n";
  const Outcome outcome = drover(
      {"train", "job.toml", "--workers", "3", "--optimizer", "sgd", "--print-job"}, folder.path());
  ASSERT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("workers = 3"));
  EXPECT_THAT(outcome.out, HasSubstr("steps = 30"));
  EXPECT_THAT(outcome.out, HasSubstr("\"sgd\""));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\"adam\"")));
}

// --- waiting

TEST(Policy, ACutoffDropsSlowWorkersAndReportsIt) {
  const TemporaryFolder folder;
  const RunReader reader =
      train(folder, "a.db",
            small_job("logistic") + Words{"--policy", "static:k=2", "--workers", "3", "--steps",
                                          "30", "--batch", "4", "--slow", "worker=1,delay=300ms"});
  const auto steps = reader.steps().value();
  ASSERT_EQ(steps.size(), 30U);
  for (const StepRecord& step : steps) EXPECT_EQ(step.contributors, 2U);
  const auto arrivals = reader.arrivals().value();
  EXPECT_EQ(std::count_if(arrivals.begin(), arrivals.end(),
                          [](const auto& each) { return each.arrival.censored || each.late; }),
            30);
}

TEST(Policy, MaxWaitEndsAStepByTheClock) {
  const TemporaryFolder folder;
  const RunReader reader =
      train(folder, "a.db",
            small_job("logistic") + Words{"--policy", "sync", "--max-wait", "40ms", "--workers",
                                          "2", "--steps", "5", "--batch", "4", "--slow",
                                          "worker=1,delay=30s"});
  const auto steps = reader.steps().value();
  ASSERT_EQ(steps.size(), 5U) << "no step waits for half a minute";
  for (const StepRecord& step : steps) EXPECT_EQ(step.contributors, 1U);
  const auto arrivals = reader.arrivals().value();
  for (const RecordedArrival& each : arrivals) {
    EXPECT_EQ(each.arrival.censored, each.arrival.worker == 1);
    if (each.arrival.censored) {
      EXPECT_GE(each.arrival.run_time, std::chrono::milliseconds(40));
    }
  }
}

// --- stragglers

Words with_a_straggler() {
  return small_job("logistic") +
         Words{"--policy", "static:k=2", "--workers", "3",      "--steps",
               "300",      "--batch",    "4",         "--slow", "worker=1,delay=10ms"};
}

TEST(Stragglers, ThatAreStoppedReportTheNextStep) {
  const TemporaryFolder folder;
  const RunReader reader = train(folder, "a.db", with_a_straggler());
  const auto abandoned = reader.abandoned().value();
  ASSERT_FALSE(abandoned.empty());
  for (const AbandonRecord& each : abandoned) {
    EXPECT_GT(each.resumed, each.step);
    EXPECT_GT(each.restart, Duration::zero());
    EXPECT_GT(each.wasted, Duration::zero());
  }
  const Outcome shown = drover({"runs", "a.db"}, folder.path());
  EXPECT_THAT(shown.out, mentions("worker 1", abandoned.size()));
  const auto json = last_line_json(drover({"runs", "a.db", "--json"}, folder.path()).out);
  EXPECT_EQ(json.at("stopped"), abandoned.size());
  EXPECT_GT(json.at("restart_seconds_median"), 0.0);
}

TEST(Stragglers, ThatFinishAreNotStoppedAndTheirTimesAreRecorded) {
  const TemporaryFolder folder;
  for (const Words& how : {Words{"--stragglers", "finish"}, Words{"--probe", "1"}}) {
    SCOPED_TRACE(how[0]);
    const RunReader reader = train(folder, how[0] + ".db", with_a_straggler() + how);
    EXPECT_TRUE(reader.abandoned().value().empty());
    const auto arrivals = reader.arrivals().value();
    size_t late = 0;
    for (const RecordedArrival& each : arrivals) {
      if (!each.late || each.arrival.worker != 1) continue;
      ++late;
      EXPECT_GE(each.arrival.run_time, std::chrono::milliseconds(10));
      EXPECT_EQ(each.arrival.samples, 4U);
    }
    EXPECT_GT(late, 0U);
  }
}

TEST(Adaptive, RevisesDecisionsAndBalancesBatches) {
  const TemporaryFolder folder;
  const RunReader run =
      train(folder, "run.db",
            small_job() + Words{"--workers", "3", "--steps", "60", "--batch", "24", "--policy",
                                "ecdf", "--policy-warmup", "8", "--live", "--balance", "--slow",
                                "worker=2,factor=4"});
  const auto arrivals = run.arrivals().value();
  std::map<uint32_t, std::set<uint32_t>> samples;  // by worker
  for (const RecordedArrival& each : arrivals) {
    if (each.arrival.samples > 0) samples[each.arrival.worker].insert(each.arrival.samples);
  }
  // On any machine the warm-up raises and lowers shares.
  for (const uint32_t worker : {0u, 1u})
    EXPECT_GT(samples[worker].size(), 1u) << "worker " << worker << " got different shares";
  const auto settings = run.header().value().settings;
  EXPECT_TRUE(std::any_of(settings.begin(), settings.end(), [](const auto& each) {
    return each.first == "live" && each.second == "true";
  }));
  EXPECT_EQ(run.steps().value().size(), 60u);
}

TEST(Pieces, OfABatchGiveTheSameGradient) {
  const TemporaryFolder folder;
  const Words job = small_job() + Words{"--deterministic", "--steps", "20", "--batch", "16"};
  const auto whole = train(folder, "whole.db", job).steps().value();
  const auto pieces = train(folder, "pieces.db", job + Words{"--micro-batch", "5"}).steps().value();
  ASSERT_EQ(whole.size(), pieces.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(pieces[i].loss, whole[i].loss, 1e-3 * whole[i].loss) << "step " << i;
    EXPECT_EQ(pieces[i].samples, whole[i].samples);
  }
}

TEST(Partition, GivesEachWorkerItsOwnSamplesAndTrains) {
  const TemporaryFolder folder;
  const Words job = small_job() + Words{"--steps", "60", "--batch", "16", "--deterministic"};
  std::set<uint64_t> digests;
  for (const char* partition : {"none", "random", "label"}) {
    const RunReader reader =
        train(folder, std::string(partition) + ".db", job + Words{"--partition", partition});
    digests.insert(digest_of(reader));
    const auto steps = reader.steps().value();
    EXPECT_LT(steps.back().loss, 0.7 * steps.front().loss) << partition;
  }
  EXPECT_EQ(digests.size(), 3U);
  EXPECT_EQ(digest_of(train(folder, "default.db", job)),
            digest_of(read_run(folder.file("none.db"))));
}

class AsynchronousPolicy : public ::testing::TestWithParam<std::string> {};

TEST_P(AsynchronousPolicy, TrainsWithoutCommonSteps) {
  for (const std::string& model : {std::string("logistic"), std::string("mlp")}) {
    SCOPED_TRACE(model);
    const TemporaryFolder folder;
    const RunReader reader =
        train(folder, "a.db",
              small_job(model) + Words{"--policy", GetParam(), "--workers", "3", "--shards", "2",
                                       "--steps", "150", "--batch", "16", "--lr", "0.02",
                                       "--evaluate-every", "50"});
    const auto steps = reader.steps().value();
    ASSERT_EQ(steps.size(), 150U);
    for (const StepRecord& step : steps) {
      EXPECT_EQ(step.contributors, 3U) << "a round has one gradient per worker";
      EXPECT_EQ(step.samples, 48U);
    }
    EXPECT_LT(steps.back().loss, 0.5 * steps.front().loss);
    const auto evaluations = reader.evaluations().value();
    ASSERT_FALSE(evaluations.empty());
    EXPECT_EQ(evaluations.back().version, 150U);
    EXPECT_GT(evaluations.back().accuracy, 0.7);
    const auto arrivals = reader.arrivals().value();
    for (const RecordedArrival& each : arrivals) EXPECT_FALSE(each.arrival.censored);
  }
}

INSTANTIATE_TEST_SUITE_P(All, AsynchronousPolicy, ::testing::Values("async", "ssp:2"),
                         [](const auto& each) {
                           return each.param.substr(0, each.param.find(':'));
                         });

TEST(Async, IsNotDelayedBySlowWorkers) {
  const TemporaryFolder folder;
  const RunReader reader =
      train(folder, "a.db",
            small_job("logistic") + Words{"--policy", "async", "--workers", "2", "--steps", "20",
                                          "--batch", "4", "--slow", "worker=1,delay=20s"});
  EXPECT_EQ(reader.steps().value().size(), 20U) << "all of worker 0";
}

TEST(Async, ReportsThatItIsNotDeterministic) {
  const TemporaryFolder folder;
  const Outcome outcome =
      drover(Words{"train", "--policy", "async", "--deterministic"} + small_job(), folder.path());
  EXPECT_EQ(outcome.status(), 2) << outcome.err;
  EXPECT_THAT(outcome.err, mentions("--deterministic", "async"));
}

// --- artificial delays

double median(std::vector<double> values) {
  DROVER_CHECK(!values.empty());
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

TEST(Slow, AFactorSlowsAWorkerDown) {
  const TemporaryFolder folder;
  const RunReader reader = train(folder, "a.db",
                                 small_job() + Words{"--workers", "3", "--steps", "40", "--batch",
                                                     "64", "--slow", "worker=1,factor=4"});
  std::map<WorkerId, std::vector<double>> compute;
  const auto arrivals = reader.arrivals().value();
  for (const RecordedArrival& each : arrivals) {
    compute[each.arrival.worker].push_back(seconds(each.arrival.compute));
  }
  EXPECT_GT(median(compute.at(1)), 2.0 * median(compute.at(0)));
  EXPECT_GT(median(compute.at(1)), 2.0 * median(compute.at(2)));
  const auto workers = reader.workers().value();
  const auto most_waited = std::max_element(
      workers.begin(), workers.end(), [](const auto& a, const auto& b) { return a.last < b.last; });
  EXPECT_EQ(most_waited->worker, 1U) << "the steps waited for it";
}

TEST(Slow, SlowsTheStepsAndWorkersDrawnByTheSeed) {
  const TemporaryFolder folder;
  const std::vector<std::string> texts = {"share=0.5,steps=2-11,delay=100ms",
                                          "worker=0,steps=14-17,delay=100ms"};
  std::vector<SlowRule> rules;
  for (const std::string& text : texts) rules.push_back(parse_slow_rule(text).value());
  const RunReader reader =
      train(folder, "a.db",
            small_job("logistic") + Words{"--workers", "3", "--steps", "20", "--batch", "1",
                                          "--seed", "9", "--slow", texts[0], "--slow", texts[1]});
  size_t hit = 0;
  size_t spared = 0;
  size_t spared_but_slow = 0;
  const auto arrivals = reader.arrivals().value();
  for (const RecordedArrival& each : arrivals) {
    const ArrivalRecord& arrival = each.arrival;
    const Duration delay = slowness_of(rules, 9, arrival.step, arrival.worker).delay;
    if (delay > Duration::zero()) {
      ++hit;
      EXPECT_GE(arrival.compute, delay) << "step " << arrival.step << " worker " << arrival.worker;
      EXPECT_GE(arrival.run_time, delay) << "step " << arrival.step << " worker " << arrival.worker;
    } else {
      ++spared;
      if (arrival.compute >= std::chrono::milliseconds(100)) ++spared_but_slow;
    }
  }
  EXPECT_GT(hit, 10U);
  EXPECT_GT(spared, 20U);
  // Other workers may be delayed too on a busy machine.
  EXPECT_LE(spared_but_slow, spared / 4);
}

// --- records

TEST(RunFile, HasTheReportOfEachUsedGradient) {
  const TemporaryFolder folder;
  const RunReader reader = train(folder, "a.db",
                                 small_job("logistic") + Words{"--workers", "3", "--steps", "400",
                                                               "--batch", "1", "--shards", "2"});
  size_t unreported = 0;
  const auto arrivals = reader.arrivals().value();
  EXPECT_EQ(arrivals.size(), 1'200U);
  for (const RecordedArrival& each : arrivals) {
    if (each.arrival.compute == Duration::zero()) ++unreported;
  }
  EXPECT_EQ(unreported, 0U);
}

// --- many workers, and all optimizers

TEST(Train, TrainsWithAHundredWorkers) {
  const TemporaryFolder folder;
  const uint32_t workers = kStretch == 1 ? 100 : 20;
  const RunReader reader = train(
      folder, "a.db",
      small_job() + Words{"--workers", std::to_string(workers), "--steps", "3", "--batch", "4"});
  const auto steps = reader.steps().value();
  ASSERT_EQ(steps.size(), 3U);
  for (const StepRecord& step : steps) {
    EXPECT_EQ(step.contributors, workers);
    EXPECT_EQ(step.samples, uint64_t{workers} * 4);
  }
}

TEST(Train, WorksOverTcpWithSeveralShards) {
  const TemporaryFolder folder;
  const RunReader reader =
      train(folder, "a.db",
            small_job() + Words{"--transport", "tcp", "--workers", "3", "--shards", "3", "--steps",
                                "15", "--batch", "8"});
  EXPECT_EQ(reader.totals().value().gradients_used, 45U);
  EXPECT_EQ(reader.totals().value().shards, 3U);
}

TEST(Train, WorksWithMoreShardsThanBlocks) {
  const TemporaryFolder folder;
  const RunReader reader = train(folder, "a.db",
                                 small_job("logistic") + Words{"--workers", "2", "--shards", "6",
                                                               "--steps", "10", "--batch", "8"});
  EXPECT_EQ(reader.steps().value().size(), 10U);
}

class EveryOptimizer : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryOptimizer, CompletesAndIsEvaluated) {
  const TemporaryFolder folder;
  const RunReader reader =
      train(folder, "a.db",
            small_job() + Words{"--optimizer",      GetParam(), "--lr",           "0.002",
                                "--workers",        "2",        "--steps",        "20",
                                "--batch",          "8",        "--ema",          "0.9",
                                "--schedule",       "cosine",   "--lr-warmup",    "3",
                                "--evaluate-every", "5",        "--weight-decay", "0.001"});
  const auto evaluations = reader.evaluations().value();
  ASSERT_GE(evaluations.size(), 1U);
  EXPECT_LE(evaluations.size(), 4U);
  for (const EvaluationRecord& each : evaluations) {
    EXPECT_EQ(each.version % 5, 0U);
    EXPECT_EQ(each.samples, 64U);
    EXPECT_TRUE(std::isfinite(each.loss));
  }
  EXPECT_EQ(evaluations.back().version, 20U);
  const auto steps = reader.steps().value();
  ASSERT_EQ(steps.size(), 20U);
  EXPECT_LT(steps[0].learning_rate, steps[2].learning_rate) << "warm-up";
  EXPECT_LT(steps[19].learning_rate, steps[5].learning_rate) << "cosine";
}

INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer,
                         ::testing::Values("sgd", "momentum", "nesterov", "rmsprop", "adam",
                                           "adamw"),
                         [](const auto& each) { return each.param; });

TEST(Train, TrainsAndSavesTheModel) {
  const TemporaryFolder folder;
  const Outcome outcome = drover(
      Words{"train", "--run-file", "a.db", "--json", "--steps", "150", "--batch", "16", "--workers",
            "2", "--optimizer", "adam", "--lr", "0.005", "--save-model", "model.pt"} +
          small_job(),
      folder.path());
  ASSERT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_GT(last_line_json(outcome.out).at("test_accuracy").get<double>(), 0.8);
  EXPECT_GT(std::filesystem::file_size(folder.file("model.pt")), 400'000U) << "100,000 floats";
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"a.db", "model.pt"}));
}

TEST(SaveModel, ReportsErrorsBeforeTraining) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("file")) << "x";
  const Outcome outcome = drover(Words{"train", "--run-file", "a.db", "--steps", "3", "--batch",
                                       "4", "--workers", "1", "--save-model", "file/model.pt"} +
                                     small_job(),
                                 folder.path());
  EXPECT_EQ(outcome.status(), 1) << outcome.err;
  EXPECT_THAT(outcome.err, mentions("file/model.pt"));
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"file"}) << "no run was started";
}

// --- doctor

TEST(Doctor, PrintsWhatItFound) {
  const TemporaryFolder folder;
  const Outcome outcome = drover({"doctor"}, folder.path());
  EXPECT_TRUE(outcome.status() == 0 || outcome.status() == 1) << outcome.err;
  EXPECT_THAT(outcome.out, mentions("cores", "disk"));
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_THAT(names_in(folder.path()), IsEmpty()) << "it writes nothing";
}

TEST(Doctor, PrintsJson) {
  const TemporaryFolder folder;
  const Outcome outcome = drover({"doctor", "--json", "--workers", "8"}, folder.path());
  const nlohmann::json json = last_line_json(outcome.out);
  ASSERT_TRUE(json.is_object()) << outcome.out;
  EXPECT_EQ(outcome.status(), json.at("problems").get<int>() > 0 ? 1 : 0);
  EXPECT_FALSE(json.at("checks").empty());
}

}  // namespace
}  // namespace drover::testing_support

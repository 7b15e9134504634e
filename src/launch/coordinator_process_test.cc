#include "launch/coordinator_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "store/checkpoint.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

class PrepareTest : public ::testing::Test {
 protected:
  PrepareTest() {
    std::string made = fs::temp_directory_path() / "drover-coordinator-process-XXXXXX";
    EXPECT_NE(::mkdtemp(made.data()), nullptr);
    folder_ = made;
    job_.record.checkpoint = folder_ + "/own";
    job_.steps = 10;
    factory_.brings_model = true;
    factory_.worker = [](const WorkerSettings&) { return 0; };
    part_.join_timeout = std::chrono::seconds(7);
    header_.job = "steps = 10";
    header_.run_id = 5;
  }
  ~PrepareTest() override { fs::remove_all(folder_); }

  void save(const std::string& dir, Version step) const {
    const std::string folder = checkpoint_folder(dir, step);
    ASSERT_TRUE(make_folder(folder).ok());
    auto values = std::make_shared<FloatBuffer>(4);
    std::ranges::fill(values->span(), 1.0F);
    const auto entry = write_checkpoint_part(
        {.shard = 0, .version = step, .blocks = {{.offset = 0, .length = 4, .parameters = values}}},
        folder);
    ASSERT_TRUE(entry.ok()) << entry.error().message;
    ASSERT_TRUE(write_manifest({.step = step,
                                .when = "2026-11-16T12:00:00Z",
                                .settings = {{"seed", std::to_string(job_.task.seed)},
                                             {"batch", std::to_string(job_.batch)}},
                                .noise = {},
                                .tensors = {{"w", 4, TensorKind::kTrained}},
                                .files = {entry.value()}},
                               folder)
                    .ok());
  }
  CoordinatorParts parts() const {
    return {
        .part = part_, .job = job_, .factory = factory_, .header = header_, .company = company_};
  }
  // The step that the next incarnation continues from.
  std::optional<Step> next() const {
    const auto prepared = prepare_again(parts());
    EXPECT_TRUE(prepared.ok()) << prepared.error().message;
    if (!prepared || !prepared.value().machine.resume) return std::nullopt;
    return prepared.value().machine.resume->step;
  }

  std::string folder_;
  Part part_;
  Job job_;
  WorkerFactory factory_;
  RunHeader header_;
  Company company_;
};

TEST_F(PrepareTest, TheFirstIncarnationFollowsJobAndFactory) {
  const auto first = prepare(parts(), job_);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first.value().machine.steps, 10u);
  EXPECT_EQ(first.value().machine.worker_options.job, "steps = 10");
  EXPECT_TRUE(first.value().machine.workers_bring_model);
  EXPECT_FALSE(first.value().machine.evaluator);
  EXPECT_FALSE(first.value().machine.resume);
  EXPECT_EQ(first.value().checkpoints.run, 5u);
}

TEST_F(PrepareTest, WorkersThatLoadAModelOrAreStartedElsewhereHaveMoreTime) {
  factory_.brings_model = false;
  EXPECT_EQ(prepare(parts(), job_).value().machine.join_timeout, std::chrono::seconds(7));
  factory_.brings_model = true;
  EXPECT_GE(prepare(parts(), job_).value().machine.join_timeout, std::chrono::minutes(1));
  factory_.worker = nullptr;
  EXPECT_GE(prepare(parts(), job_).value().machine.join_timeout, std::chrono::hours(1));
}

TEST_F(PrepareTest, AFurtherIncarnationContinuesFromItsNewestCheckpoint) {
  EXPECT_EQ(next(), std::nullopt) << "from the first step";
  save(job_.record.checkpoint, 4);
  save(job_.record.checkpoint, 6);
  EXPECT_EQ(next(), 6u);
}

TEST_F(PrepareTest, AFurtherIncarnationWithoutACheckpointContinuesFromWhereTheRunBegan) {
  job_.record.resume = folder_ + "/before";
  save(job_.record.resume, 3);
  EXPECT_EQ(next(), 3u);
  save(job_.record.checkpoint, 5);
  EXPECT_EQ(next(), 5u);
}

TEST_F(PrepareTest, AFurtherIncarnationDoesNotContinueFromTheLastStep) {
  save(job_.record.checkpoint, 10);
  EXPECT_EQ(next(), std::nullopt);
}

}  // namespace
}  // namespace drover

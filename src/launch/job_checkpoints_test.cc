#include "launch/job_checkpoints.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/test_text.h"
#include "store/checkpoint.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

class JobCheckpointsTest : public ::testing::Test {
 protected:
  JobCheckpointsTest() {
    std::string made = fs::temp_directory_path() / "drover-job-checkpoints-XXXXXX";
    EXPECT_NE(::mkdtemp(made.data()), nullptr);
    job_.record.checkpoint = made;
    job_.steps = 10;
  }
  ~JobCheckpointsTest() override { fs::remove_all(job_.record.checkpoint); }

  // A checkpoint of another model and optimiser than the job's.
  void save(Version step) {
    const std::string folder = checkpoint_folder(job_.record.checkpoint, step);
    ASSERT_TRUE(make_folder(folder).ok());
    auto values = std::make_shared<FloatBuffer>(4);
    std::fill(values->span().begin(), values->span().end(), 1.0F);
    const auto entry = write_checkpoint_part(
        {.shard = 0, .version = step, .blocks = {{.offset = 0, .length = 4, .parameters = values}}},
        folder);
    ASSERT_TRUE(entry.ok()) << entry.error().message;
    ASSERT_TRUE(write_manifest({.step = step,
                                .when = "2026-11-16T12:00:00Z",
                                .settings = {},
                                .noise = {},
                                .tensors = {{"w", 4, TensorKind::kTrained}},
                                .files = {entry.value()}},
                               folder)
                    .ok());
  }
  bool is_there(const std::string& name) const {
    return fs::exists(fs::path(job_.record.checkpoint) / name);
  }

  Job job_;
};

TEST_F(JobCheckpointsTest, CheckpointsOfAnotherRunAreNotOverwritten) {
  save(10);
  const auto prepared = prepare_checkpoints(job_, false);
  ASSERT_FALSE(prepared.ok());
  EXPECT_THAT(prepared.error(),
              is_error(ErrorKind::kInvalidInput, checkpoint_folder(job_.record.checkpoint, 10),
                       "--resume " + job_.record.checkpoint, "--checkpoint"));
  EXPECT_TRUE(is_there("step-0000000010"));
}

TEST_F(JobCheckpointsTest, DamagedCheckpointsAreAnErrorAndNotIgnored) {
  save(5);
  std::ofstream(checkpoint_folder(job_.record.checkpoint, 5) + "/" + kManifestName) << "not this";
  job_.record.resume = job_.record.checkpoint;
  const auto prepared = prepare_checkpoints(job_, false);
  ASSERT_FALSE(prepared.ok());
  EXPECT_THAT(prepared.error(), is_error(ErrorKind::kInvalidInput, job_.record.resume, "--resume",
                                         "drover checkpoint inspect " + job_.record.resume));
  EXPECT_TRUE(is_there("step-0000000005")) << "nothing is moved or removed";
}

TEST_F(JobCheckpointsTest, AnUnfinishedCheckpointIsIgnored) {
  ASSERT_TRUE(make_folder(checkpoint_folder(job_.record.checkpoint, 5)).ok());
  job_.record.resume = job_.record.checkpoint;
  const auto prepared = prepare_checkpoints(job_, false);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  EXPECT_FALSE(prepared.value().resume);
}

// A shard may be lost while the final version is evaluated.
TEST_F(JobCheckpointsTest, ARunThatRestartsIgnoresTheCheckpointOfItsLastStep) {
  save(10);
  job_.record.resume = job_.record.checkpoint;
  const auto prepared = prepare_checkpoints(job_, false, job_.steps);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  EXPECT_FALSE(prepared.value().resume);
  EXPECT_TRUE(is_there("step-0000000010.aside")) << "it is moved aside, not removed";
  EXPECT_FALSE(is_there("step-0000000010"));
}

}  // namespace
}  // namespace drover

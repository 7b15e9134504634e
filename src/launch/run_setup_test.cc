// Errors in a run's files and addresses are found before processes are started.
#include "launch/run_setup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/test_text.h"

namespace drover {
namespace {

class RunSetupTest : public ::testing::Test {
 protected:
  RunSetupTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("run-setup-test-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~RunSetupTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  const std::filesystem::path folder_;
};

TEST_F(RunSetupTest, ListensForOtherHostsOnlyWithTlsOrInsecure) {
  JobCluster cluster{.transport = Transport::kTcp, .listen = "0.0.0.0:0"};
  const Status refused = check_listen(cluster);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error(), is_error(ErrorKind::kInvalidInput, "--listen", "--insecure"));
  cluster.insecure = true;
  EXPECT_TRUE(check_listen(cluster).ok());
  cluster.insecure = false;
  cluster.tls = "keys";
  EXPECT_TRUE(check_listen(cluster).ok());
}

TEST_F(RunSetupTest, ListensOnThisHostWithoutTls) {
  EXPECT_TRUE(check_listen({.transport = Transport::kTcp, .listen = "127.0.0.1:0"}).ok());
  EXPECT_TRUE(check_listen({.transport = Transport::kTcp, .listen = "[::1]:0"}).ok());
}

TEST_F(RunSetupTest, TheAddressMattersOnlyWithTcp) {
  EXPECT_TRUE(check_listen({.transport = Transport::kUnix, .listen = "0.0.0.0:0"}).ok());
}

TEST_F(RunSetupTest, NeverOverwritesARunFile) {
  EXPECT_TRUE(check_run_file(path("run.db")).ok());
  { std::ofstream file(path("run.db")); }
  EXPECT_TRUE(check_run_file(path("run.db")).ok()) << "an empty file";
  std::ofstream(path("run.db")) << "a run";
  EXPECT_FALSE(check_run_file(path("run.db")).ok());
  EXPECT_FALSE(check_run_file(folder_.string()).ok()) << "a folder";
}

TEST_F(RunSetupTest, SavesAModelOnlyIntoAnExistingFolder) {
  EXPECT_TRUE(check_model_path("--save-model", path("model.pt")).ok());
  EXPECT_FALSE(check_model_path("--save-model", path("missing/model.pt")).ok());
  EXPECT_FALSE(check_model_path("--save-model", folder_.string()).ok());
}

TEST_F(RunSetupTest, ChecksTheFolderOfTheData) {
  EXPECT_TRUE(check_data_dir({.data_dir = ""}).ok());
  EXPECT_TRUE(check_data_dir({.data_dir = folder_.string()}).ok());
  const Status missing = check_data_dir({.data_dir = path("missing")});
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, mentions(path("missing")));
}

TEST_F(RunSetupTest, NamesARunFileAfterTimeAndTask) {
  EXPECT_EQ(default_run_file("mlp-my data/set", 0), "runs/19700101-000000-mlp-my-data-set.db");
}

}  // namespace
}  // namespace drover

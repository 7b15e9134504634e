// drover launch takes the settings of the run, and passes all later arguments to the script.
#include "cli/launch_options.h"

#include <gtest/gtest.h>

#include "core/test_text.h"

namespace drover {
namespace {

class LaunchOptionsTest : public ::testing::Test {
 protected:
  void parse(const std::vector<std::string>& words) {
    CLI::App app;
    CLI::App* launch = app.add_subcommand("launch");
    add_launch_options(*launch, options_);
    std::string line = "launch";
    for (const std::string& word : words) line += " " + word;
    app.parse(line);
    options_.script = launch->remaining();
  }
  LaunchOptions options_;
};

TEST_F(LaunchOptionsTest, PassesWordsAfterTheScriptToIt) {
  parse({"--workers", "3", "--policy", "static:0.5", "train.py", "--workers", "9", "--lr", "1"});
  EXPECT_EQ(options_.script, (std::vector<std::string>{"train.py", "--workers", "9", "--lr", "1"}));
  const auto job = job_of(options_);
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job.value().cluster.workers, 3u);
  EXPECT_EQ(job.value().waiting.policy, "static:0.5");
}

TEST_F(LaunchOptionsTest, RunsUntilTheScriptsEndUnlessStepsAreGiven) {
  parse({"train.py"});
  EXPECT_EQ(job_of(options_).value().steps, kEndless);
  options_ = {};
  parse({"--steps", "50", "train.py"});
  EXPECT_EQ(job_of(options_).value().steps, 50u);
}

TEST_F(LaunchOptionsTest, LetsAsManyScriptsFailAsAreAllowed) {
  parse({"train.py"});
  EXPECT_EQ(options_.allow_failures, 0u);
  options_ = {};
  parse({"--allow-failures", "2", "-m", "package.train", "--allow-failures", "9"});
  EXPECT_EQ(options_.allow_failures, 2u);
  EXPECT_EQ(options_.script,
            (std::vector<std::string>{"-m", "package.train", "--allow-failures", "9"}));
}

TEST_F(LaunchOptionsTest, HasNoFlagForSettingsOfTheScript) {
  for (const std::string flag : {"--model", "--lr", "--optimizer", "--data", "--pull"}) {
    options_ = {};
    parse({flag, "x", "train.py"});
    EXPECT_EQ(options_.script.front(), flag) << "not taken as a flag";
  }
}

TEST_F(LaunchOptionsTest, ListensForOtherHostsOnlyWithTlsOrExplicitPermission) {
  parse({"--transport", "tcp", "--listen", "0.0.0.0:0", "train.py"});
  const auto refused = job_of(options_);
  ASSERT_FALSE(refused.ok()) << "before anything is started or recorded";
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("--listen"));
  options_ = {};
  parse({"--transport", "tcp", "--listen", "0.0.0.0:0", "--insecure", "train.py"});
  EXPECT_TRUE(job_of(options_).ok());
}

TEST_F(LaunchOptionsTest, HasNoMpi) {
  parse({"--transport", "mpi", "train.py"});
  const auto job = job_of(options_);
  ASSERT_FALSE(job.ok());
  EXPECT_THAT(job.error(),
              is_error(ErrorKind::kInvalidInput, "--transport", "mpi", "drover train"));
}

}  // namespace
}  // namespace drover

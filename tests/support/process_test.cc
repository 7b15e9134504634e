// Process reads all output and the exit status, never hangs past a deadline, and ends all
// processes.
#include "support/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace drover::testing_support {
namespace {

using namespace std::chrono_literals;

// Scripts use `exec`: without it signals would reach only the shell.
Process shell(const std::string& script, Command command = {}) {
  command.words = {"/bin/sh", "-c", script};
  Result<Process> process = Process::start(command);
  EXPECT_TRUE(process.ok());
  return std::move(process).value();
}

Ending exited(int code) { return {code, std::nullopt}; }
Ending killed(int signal) { return {std::nullopt, signal}; }

TEST(Process, ReportsHowAProgramEnded) {
  EXPECT_EQ(shell("exit 0").wait().value(), exited(0));
  EXPECT_EQ(shell("exit 3").wait().value(), exited(3));
  EXPECT_EQ(shell("kill -9 $$").wait().value(), killed(SIGKILL));
  EXPECT_EQ(to_text(exited(3)), "exit code 3");
  EXPECT_EQ(to_text(killed(9)), "signal 9");
}

TEST(Process, ReturnsTheSameWhenCalledTwice) {
  Process process = shell("exit 5");
  EXPECT_EQ(process.wait().value(), exited(5));
  EXPECT_EQ(process.wait(0ms).value(), exited(5));
}

TEST(Process, SeparatesOutputs) {
  Process process = shell("echo one; echo two >&2; printf three");
  ASSERT_TRUE(process.wait().ok());
  EXPECT_EQ(process.output(Output::kStdout), "one\nthree");
  EXPECT_EQ(process.output(Output::kStderr), "two\n");
}

TEST(Process, ReadsMoreThanAPipeHolds) {
  Process process = shell("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2");
  EXPECT_EQ(process.wait().value(), exited(0));
  EXPECT_EQ(process.output(Output::kStdout).size(), 1'000'000u);
  EXPECT_EQ(process.output(Output::kStderr).size(), 1'000'000u);
}

TEST(Process, FindsLinesInOrder) {
  Process process = shell("echo alpha; echo beta; echo gamma; printf omega");
  EXPECT_EQ(process.wait_for_line("bet").value(), "beta");
  EXPECT_EQ(process.wait_for_line([](std::string_view line) { return line.size() == 5; }).value(),
            "gamma");
  EXPECT_EQ(process.wait_for_line("omega").value(), "omega") << "the last line needs no newline";
}

TEST(Process, FindsLinesOnBothOutputsAndAfterTheEnd) {
  Process process = shell("echo out; echo err >&2");
  ASSERT_TRUE(process.wait().ok());
  EXPECT_TRUE(process.wait_for_line([](std::string_view) { return true; }).ok());
  EXPECT_TRUE(process.wait_for_line([](std::string_view) { return true; }).ok());
  EXPECT_FALSE(process.wait_for_line([](std::string_view) { return true; }).ok());
}

TEST(Process, ReportsTheOutputWhenALineNeverComes) {
  Process process = shell("echo something else");
  const Result<std::string> line = process.wait_for_line("expected");
  ASSERT_FALSE(line.ok());
  EXPECT_EQ(line.error().kind, ErrorKind::kDisconnected);
  EXPECT_NE(line.error().message.find("something else"), std::string::npos);
}

TEST(Process, KeepsDeadlines) {
  Process process = shell("echo ready; exec cat /dev/zero >/dev/null");
  ASSERT_TRUE(process.wait_for_line("ready").ok());
  EXPECT_EQ(process.wait_for_line("never", 1ms).error().kind, ErrorKind::kTimedOut);
  EXPECT_EQ(process.wait(1ms).error().kind, ErrorKind::kTimedOut);
  EXPECT_FALSE(process_gone(process.pid()));
}

TEST(Process, SendsSignals) {
  Process process = shell("trap 'echo caught; exit 7' TERM; echo ready; while :; do :; done");
  ASSERT_TRUE(process.wait_for_line("ready").ok());
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait_for_line("caught").value(), "caught");
  EXPECT_EQ(process.wait().value(), exited(7));
  process.signal(SIGTERM);  // must not reach another process with the same number
}

TEST(Process, SetsEnvironmentAndFolder) {
  const TemporaryFolder folder;
  Command command;
  command.environment = {{"DROVER_TEST_WORD", "two words"}, {"HOME", "/elsewhere"}};
  command.directory = folder.path();
  Process process = shell("echo \"$DROVER_TEST_WORD, $HOME, $PATH\"; pwd -P", command);
  EXPECT_EQ(process.wait_for_line("two").value().substr(0, 22), "two words, /elsewhere,");
  EXPECT_EQ(process.wait_for_line("/").value(), std::filesystem::canonical(folder.path()).string());
}

TEST(Process, ReportsAMissingProgram) {
  const Result<Process> process = Process::start({{"/no/such/program"}, {}, {}});
  ASSERT_FALSE(process.ok());
  EXPECT_NE(process.error().message.find("/no/such/program"), std::string::npos);
}

TEST(Process, KillsItsWholeGroup) {
  pid_t parent = 0;
  pid_t child = 0;
  {
    Process process = shell("cat /dev/zero >/dev/null & echo child $!; wait");
    child = static_cast<pid_t>(std::stol(process.wait_for_line("child").value().substr(6)));
    parent = process.pid();
    EXPECT_EQ(children_of(parent), std::vector<pid_t>{child});
    EXPECT_FALSE(process_gone(child));
  }
  EXPECT_TRUE(process_gone(parent));
  EXPECT_TRUE(wait_until_gone(child));
}

TEST(Process, KillsItsGroupAfterTheLeaderHasEnded) {
  pid_t child = 0;
  {
    Process process = shell("cat /dev/zero >/dev/null & echo child $!");
    child = static_cast<pid_t>(std::stol(process.wait_for_line("child").value().substr(6)));
    // The child still holds the pipes: wait() must return when the leader has ended.
    EXPECT_EQ(process.wait().value(), exited(0));
    EXPECT_FALSE(process_gone(child));
  }
  EXPECT_TRUE(wait_until_gone(child));
}

TEST(Process, RunsInItsOwnGroup) {
  Process process = shell("echo ready; exec cat /dev/zero >/dev/null");
  ASSERT_TRUE(process.wait_for_line("ready").ok());
  EXPECT_EQ(::getpgid(process.pid()), process.pid());
  process.signal_group(SIGINT);
  EXPECT_EQ(process.wait().value(), killed(SIGINT));
}

TEST(Process, ProcessGoneRecognisesEndedProcesses) {
  EXPECT_FALSE(process_gone(::getpid()));
  Process process = shell("exit 0");
  EXPECT_TRUE(wait_until_gone(process.pid())) << "a zombie counts as gone";
  ASSERT_TRUE(process.wait().ok());
  EXPECT_TRUE(process_gone(process.pid()));
  EXPECT_TRUE(wait_until_gone(process.pid()));
  EXPECT_TRUE(children_of(process.pid()).empty());
  EXPECT_FALSE(wait_until_gone(::getpid(), 1ms));
}

TEST(TemporaryFolder, IsFreshAndRemoved) {
  std::string path;
  {
    const TemporaryFolder folder;
    const TemporaryFolder other;
    path = folder.path();
    EXPECT_NE(path, other.path());
    std::filesystem::create_directory(folder.file("deep"));
    std::ofstream(folder.file("deep/file")) << "content";
    EXPECT_TRUE(std::filesystem::exists(path + "/deep/file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace drover::testing_support

// Runs whose blocks travel as MPI messages, under a real mpirun; skipped where there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/test_text.h"
#include "store/checkpoint.h"
#include "store/run_reader.h"
#include "support/drover_run.h"

namespace drover::testing_support {
namespace {

namespace fs = std::filesystem;

std::string find_mpirun() {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (fs::exists(folder + "/mpirun")) return folder + "/mpirun";
  }
  return {};
}

bool is_open_mpi(const std::string& mpirun) {
  auto process = Process::start({.words = {mpirun, "--version"}});
  return process && process.value().wait(kRunPatience).ok() &&
         process.value().output(Output::kStdout).find("Open MPI") != std::string::npos;
}

// The process with the name `name`; 0 if there is none. The children of mpirun are launchers, and
// their children are the processes of the run.
pid_t rank_process(pid_t mpirun, const std::string& name) {
  for (const pid_t launcher : children_of(mpirun)) {
    for (const pid_t process : children_of(launcher)) {
      std::ifstream file("/proc/" + std::to_string(process) + "/comm");
      std::string found;
      if (std::getline(file, found) && found == name) return process;
    }
  }
  return 0;
}

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    mpirun_ = find_mpirun();
    if (mpirun_.empty() || !is_open_mpi(mpirun_))
      GTEST_SKIP() << "mpirun of Open MPI is not installed (Debian: openmpi-bin)";
    if (!fs::exists(fs::path(DROVER_BINARY).parent_path() / "libdrover_mpi.so"))
      GTEST_SKIP() << "this tree was built without MPI (Debian: libopenmpi-dev)";
  }

  // Runs `ranks` ranks of `drover train`, with the flags that mpirun needs in a test.
  Process start(int ranks, const Words& words) {
    auto process = Process::start(
        {.words = Words{mpirun_, "-n", std::to_string(ranks), DROVER_BINARY, "train"} + words,
         .environment = {{"HOME", folder_.path()},
                         {"TMPDIR", scratch_.path()},
                         {"TERM", "dumb"},
                         {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                         {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                         {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                         {"OMPI_MCA_btl", "vader,self,tcp"},
                         // Each rank writes the number of bytes that it has sent to each other
                         // rank.
                         {"OMPI_MCA_pml_monitoring_enable", "2"},
                         {"OMPI_MCA_pml_monitoring_enable_output", "3"},
                         {"OMPI_MCA_pml_monitoring_filename", folder_.file("sent")}},
         .directory = folder_.path()});
    DROVER_CHECK(process.ok());
    return std::move(process).value();
  }
  Outcome run(int ranks, const Words& words) {
    Process process = start(ranks, words);
    const auto ending = process.wait(kRunPatience);
    EXPECT_TRUE(ending.ok()) << (ending ? "" : ending.error().message);
    return {ending ? ending.value() : Ending{}, process.output(Output::kStdout),
            process.output(Output::kStderr)};
  }

  RunEnd end_of(const std::string& run_file) const {
    return RunReader::open(folder_.file(run_file)).value().end().value();
  }

  // The bytes that rank `from` has sent to rank `to`, as counted by MPI.
  uint64_t bytes_sent(int from, int to) const {
    std::ifstream file(folder_.file("sent." + std::to_string(from) + ".prof"));
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string kind;
      int sender = -1;
      int receiver = -1;
      uint64_t bytes = 0;
      if (words >> kind >> sender >> receiver >> bytes && kind == "E" && sender == from &&
          receiver == to)
        return bytes;
    }
    return 0;
  }

  std::string mpirun_;
  TemporaryFolder folder_;
  TemporaryFolder scratch_;
};

Words job(const std::string& run_file) {
  return small_job("lenet") + Words{"--batch",  "4", "--steps",    "20",    "--deterministic",
                                    "--shards", "2", "--run-file", run_file};
}

TEST_F(Mpi, BlocksAreSentByMpiAndResultsEqualThoseOfSharedMemory) {
  ASSERT_EQ(drover(Words{"train", "--workers", "3"} + job("shm.db"), folder_.path()).status(), 0);
  const Outcome outcome = run(5, job("mpi.db") + Words{"--transport", "mpi"});
  ASSERT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_EQ(end_of("mpi.db").outcome, RunOutcome::kCompleted);
  ASSERT_NE(end_of("shm.db").parameters_digest, 0u);
  EXPECT_EQ(end_of("mpi.db").parameters_digest, end_of("shm.db").parameters_digest);
  // Of 5 ranks, ranks 0 and 2 are the two shards, and ranks 1, 3 and 4 are workers.
  for (const int shard : {0, 2}) {
    for (const int worker : {1, 3, 4}) {
      EXPECT_GT(bytes_sent(worker, shard), 20u * 16'384) << worker << " to " << shard;
      EXPECT_GT(bytes_sent(shard, worker), 20u * 16'384) << shard << " to " << worker;
    }
  }
  EXPECT_EQ(bytes_sent(1, 3), 0u);
  EXPECT_TRUE(fs::is_empty(folder_.file(".cache/drover"))) << "a token was not deleted";
}

TEST_F(Mpi, SupportsShortNumbersAndCutoffs) {
  const Outcome outcome =
      run(4, small_job("lenet") + Words{"--batch", "4", "--steps", "40", "--transport", "mpi",
                                        "--wire-dtype", "bfloat16", "--policy", "static:0.67",
                                        "--slow", "worker=1,delay=30ms", "--run-file", "run.db"});
  ASSERT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_EQ(end_of("run.db").outcome, RunOutcome::kCompleted);
}

// The run hangs in step 15, where a worker takes ten minutes. Then another worker is killed.
TEST_F(Mpi, ARunThatLosesARankEndsAndResumesFromItsNewestCheckpoint) {
  const Words kept = {"--transport", "mpi", "--checkpoint", "ck", "--checkpoint-every", "10"};
  ASSERT_EQ(run(5, job("whole.db") + Words{"--transport", "mpi"}).status(), 0);
  {
    Process process =
        start(5, job("lost.db") + kept + Words{"--slow", "worker=1,steps=15,delay=600s"});
    const std::string manifest = checkpoint_folder(folder_.file("ck"), 10) + "/" + kManifestName;
    // A line is printed once it is written.
    const auto saved =
        process.wait_for_line([&](std::string_view) { return fs::exists(manifest); }, kRunPatience);
    ASSERT_TRUE(saved.ok()) << saved.error().message;
    const pid_t worker = rank_process(process.pid(), "drover worker 2");
    ASSERT_NE(worker, 0);
    ASSERT_EQ(::kill(worker, SIGKILL), 0);
    const auto ending = process.wait(kRunPatience);
    ASSERT_TRUE(ending.ok()) << ending.error().message;
    EXPECT_NE(ending.value().exit_code, 0);
    EXPECT_THAT(process.output(Output::kStderr), mentions("worker 2", 9));
  }
  EXPECT_NE(end_of("lost.db").outcome, RunOutcome::kCompleted);
  const Outcome rest = run(5, job("rest.db") + kept + Words{"--resume", "ck"});
  ASSERT_EQ(rest.status(), 0) << rest.err;
  const auto steps = RunReader::open(folder_.file("rest.db")).value().steps().value();
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(steps.front().step, 10u);
  EXPECT_EQ(end_of("rest.db").parameters_digest, end_of("whole.db").parameters_digest);
}

TEST_F(Mpi, ReportsErrorsBeforeAnythingStarts) {
  EXPECT_THAT(run(3, job("a.db") + Words{"--transport", "mpi", "--workers", "3"}).err,
              mentions(3, 2, 1));
  EXPECT_THAT(run(2, job("a.db") + Words{"--transport", "mpi"}).err,
              mentions("--transport", "mpi", 2, "--shards 1"));
  EXPECT_THAT(drover(Words{"train", "--transport", "mpi"} + job("a.db"), folder_.path()).err,
              mentions("--transport", "mpi", "mpirun"));
  EXPECT_FALSE(fs::exists(folder_.file("a.db")));
}

}  // namespace
}  // namespace drover::testing_support

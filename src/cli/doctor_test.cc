// Each check must detect its problem and advise a fix; a healthy machine must pass.
#include "cli/doctor.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/test_text.h"
#include "store/test_run.h"

namespace drover {
namespace {

using ::testing::ContainsRegex;

DoctorInputs healthy() {
  DoctorInputs in;
  in.workers = 4;
  in.shards = 2;
  in.kernel = "6.1.0";
  in.cores = 8;
  in.memory_bytes = 16'000'000'000;
  in.memory_available_bytes = 12'000'000'000;
  BlasReport blas;
  blas.name = "OpenBLAS 0.3.21";
  blas.is_openblas = true;
  blas.threading = BlasThreading::kOpenMp;
  in.blas = blas;
  in.torch = done();
  in.fit = done();
  in.shared_memory = done();
  in.shared_memory_bytes = 8'000'000'000;
  in.tcp_port = done();
  in.unix_socket = done();
  in.files_soft = 1024;
  in.files_hard = 4096;
  in.run_folder_writable = done();
  in.disk_free_bytes = 80'000'000'000;
  in.data_sets = {{"fashion-mnist", "/usr/share/datasets/fashion-mnist", true},
                  {"mnist", "/data/mnist", false}};
  in.congestion_control = "cubic";
  return in;
}

Check find(const std::vector<Check>& checks, const std::string& name) {
  for (const Check& check : checks) {
    if (check.name == name) return check;
  }
  ADD_FAILURE() << "no check is called " << name;
  return {};
}

// Breaks a healthy machine, and expects check `name` to report it with `advice` in its advice.
template <typename Break>
void expect_noticed(const std::string& name, CheckState state, const std::string& advice,
                    Break break_machine) {
  SCOPED_TRACE(name + ": " + advice);
  DoctorInputs in = healthy();
  break_machine(in);
  const std::vector<Check> checks = examine(in);
  const Check check = find(checks, name);
  EXPECT_EQ(check.state, state) << check.found;
  EXPECT_THAT(check.advice, mentions(advice));
  EXPECT_FALSE(check.found.empty());
  EXPECT_EQ(exit_status(checks), state == CheckState::kProblem ? 1 : 0);
  for (const Check& other : checks) {
    if (other.name == name) continue;
    EXPECT_EQ(other.state, CheckState::kOk) << other.name;
  }
}

TEST(Doctor, AHealthyMachinePasses) {
  const std::vector<Check> checks = examine(healthy());
  for (const Check& check : checks) {
    EXPECT_EQ(check.state, CheckState::kOk) << check.name << " " << check.found;
    EXPECT_EQ(check.advice, "") << check.name;
  }
  EXPECT_EQ(exit_status(checks), 0);
  const std::string text = to_text(checks);
  EXPECT_THAT(text, ContainsRegex("\nok       disk           [^\n]*80 GB[^\n]*runs/"));
  EXPECT_THAT(text, mentions("drover data get mnist"));
}

TEST(Doctor, DetectsEachProblem) {
  using enum CheckState;
  const Error trouble = system_error("it said no");
  expect_noticed("cores", kWarning, "--workers 8", [](auto& in) {
    in.workers = 65;
    in.memory_available_bytes = 100'000'000'000;
  });
  expect_noticed("memory", kWarning, std::to_string(healthy().workers),
                 [](auto& in) { in.memory_available_bytes = 1; });
  expect_noticed("libtorch", kProblem, "apt-get", [&](auto& in) { in.torch = trouble; });
  expect_noticed("model fitting", kWarning, "drover fit", [&](auto& in) { in.fit = trouble; });
  expect_noticed("BLAS", kProblem, "libopenblas0-openmp",
                 [](auto& in) { in.blas->value().threading = BlasThreading::kSingle; });
  expect_noticed("BLAS", kWarning, "libopenblas0-openmp", [](auto& in) {
    in.blas->value().is_openblas = false;
    in.blas->value().advice = "slow.";
  });
  expect_noticed("BLAS", kWarning, "libtorch", [&](auto& in) { in.blas = trouble; });
  expect_noticed("shared memory", kProblem, "memfd_create",
                 [&](auto& in) { in.shared_memory = trouble; });
  expect_noticed("sockets", kProblem, "--transport tcp",
                 [&](auto& in) { in.unix_socket = trouble; });
  expect_noticed("sockets", kWarning, "--transport tcp", [&](auto& in) { in.tcp_port = trouble; });
  expect_noticed("TCP", kWarning, "sysctl", [](auto& in) { in.congestion_control = "bbr"; });
  expect_noticed("open files", kProblem, "ulimit -n 88", [](auto& in) { in.files_soft = 80; });
  expect_noticed("open files", kProblem, "limits.conf",
                 [](auto& in) { in.files_soft = in.files_hard = 80; });
  expect_noticed("disk", kProblem, "--run-file",
                 [&](auto& in) { in.run_folder_writable = trouble; });
  expect_noticed("disk", kWarning, "--run-file",
                 [](auto& in) { in.disk_free_bytes = 500'000'000; });
  expect_noticed("disk", kProblem, "--run-file", [](auto& in) { in.disk_free_bytes = 0; });
  expect_noticed("fashion-mnist", kWarning, "apt-get install dataset-fashion-mnist",
                 [](auto& in) { in.data_sets[0].present = false; });
}

TEST(Doctor, ChecksOnlyWhatWasMeasured) {
  const std::vector<Check> checks = examine(DoctorInputs{});
  EXPECT_EQ(checks.size(), 3u);  // cores, memory, open files: plain numbers, always present
}

TEST(Doctor, PrintsAdviceBelowTheCheck) {
  const std::vector<Check> checks = {{"disk", CheckState::kProblem, "full", "free some"},
                                     {"cores", CheckState::kOk, "8", ""}};
  EXPECT_EQ(to_text(checks),
            "problem  disk   full\n"
            "                free some\n"
            "ok       cores  8\n"
            "Not ready: 1 problem to fix before a run works.\n");
  const auto json = nlohmann::json::parse(to_json_line(checks));
  EXPECT_EQ(json["problems"], 1);
  EXPECT_EQ(json["warnings"], 0);
  EXPECT_EQ(json["checks"][0]["state"], "problem");
  EXPECT_EQ(json["checks"][0]["advice"], "free some");
}

TEST(Doctor, CountsFilesForEveryPeer) {
  EXPECT_EQ(files_needed(0, 0), 64u);
  EXPECT_EQ(files_needed(100, 4), 480u);
}

TEST(Doctor, MeasuresThisMachineWithoutSideEffects) {
  const TempFolder folder;
  DoctorQuestion question;
  question.run_folder = folder.file("not/yet/there");
  question.data_dir = folder.file("data");
  std::filesystem::create_directories(folder.file("data/cifar10"));
  folder.make_file("data/cifar10/data_batch_1.bin", "");
  folder.make_file("data/cifar10/test_batch.bin.gz", "");
  const DoctorInputs in = gather(question);
  EXPECT_GE(in.cores, 1u);
  EXPECT_GT(in.memory_bytes, 0u);
  EXPECT_LE(in.memory_available_bytes, in.memory_bytes);
  EXPECT_FALSE(in.kernel.empty());
  EXPECT_GT(in.files_soft, 0u);
  EXPECT_TRUE(in.run_folder_writable->ok());
  EXPECT_FALSE(std::filesystem::exists(folder.file("not")));
  ASSERT_EQ(in.data_sets.size(), 3u);
  EXPECT_FALSE(in.data_sets[1].present);
  EXPECT_TRUE(in.data_sets[2].present);
  EXPECT_FALSE(in.blas.has_value());
}

TEST(Doctor, ARunFolderUnderAFileIsAProblem) {
  const TempFolder folder;
  folder.make_file("file", "");
  DoctorQuestion question;
  question.run_folder = folder.file("file/runs");
  EXPECT_EQ(find(examine(gather(question)), "disk").state, CheckState::kProblem);
}

}  // namespace
}  // namespace drover

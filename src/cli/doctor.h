// `drover doctor`: does this machine have what a run needs, and if not, what helps?
//
// Looking (gather) is apart from judging (examine), so that tests can judge machines they do not
// have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "tasks/blas_check.h"

namespace drover {

enum class CheckState : uint8_t {
  kOk,
  kWarning,
  kProblem
};  // a run works; works badly; does not work

struct Check {
  std::string name;  // one word or two: "disk"
  CheckState state = CheckState::kOk;
  std::string found;   // what is there, one line
  std::string advice;  // what to do about it; empty if ok
};

struct DataSetPlace {
  std::string name;    // as --data takes it
  std::string folder;  // where it belongs
  bool present = false;
};

// Results are absent if nobody looked; then nothing is said of them.
struct DoctorInputs {
  uint32_t workers = 4;
  uint32_t shards = 2;
  std::string kernel;  // "6.1.0-18-amd64"
  uint32_t cores = 0;  // that this process may use
  uint64_t memory_bytes = 0;
  uint64_t memory_available_bytes = 0;
  std::optional<Result<BlasReport>> blas;
  std::optional<Status> torch;  // loading the module that brings libtorch
  std::optional<Status> fit;    // ... and beside it the one that fits models of run-times
  std::optional<Status> shared_memory;
  uint64_t shared_memory_bytes = 0;  // size of /dev/shm; 0: there is none
  std::optional<Status> tcp_port;
  std::optional<Status> unix_socket;
  uint64_t files_soft = 0;  // RLIMIT_NOFILE
  uint64_t files_hard = 0;
  std::string run_folder = "runs";
  std::optional<Status> run_folder_writable;
  uint64_t disk_free_bytes = 0;
  std::vector<DataSetPlace> data_sets;
  std::string congestion_control;  // of TCP: "cubic"
};

// What only the caller knows.
struct DoctorQuestion {
  uint32_t workers = 4;
  uint32_t shards = 2;
  std::string run_folder = "runs";
  std::string data_dir;
  std::optional<Result<BlasReport>> blas;
  std::optional<Status> torch;
  std::optional<Status> fit;
};

// Looks at this machine. Leaves nothing behind: no file, no folder, no socket.
DoctorInputs gather(const DoctorQuestion& question);

// Judges. Equal inputs get equal answers.
std::vector<Check> examine(const DoctorInputs& inputs);

// Open files that the busiest process of a run needs. Coordinator or shard, it holds at most four
// per peer: a control connection, a bulk connection, a piece of shared memory, and a handle on the
// process; and 64 of its own.
uint64_t files_needed(uint32_t workers, uint32_t shards);

std::string_view name_of(CheckState state);

// "ok       disk      80 GB free in runs/", advice indented below, and a last line that sums up.
std::string to_text(const std::vector<Check>& checks);
// An object with "problems", "warnings" and "checks", in one line without '\n'.
std::string to_json_line(const std::vector<Check>& checks);

// 1 if there is a problem, else 0: warnings do not stop a run.
int exit_status(const std::vector<Check>& checks);

}  // namespace drover

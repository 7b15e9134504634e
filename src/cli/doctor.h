// `drover doctor`: checks whether this machine has what a run needs, and advises what to do if not.
//
// gather() measures the machine and examine() judges the measurements, so that tests can judge
// machines other than their own.
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
  kWarning,  // runs work, but with restrictions or slowly
  kProblem   // runs do not work
};

struct Check {
  std::string name;  // one or two words: "disk"
  CheckState state = CheckState::kOk;
  std::string found;   // the measurement, in one line
  std::string advice;  // what to do; empty if ok
};

struct DataSetPlace {
  std::string name;    // value of --data
  std::string folder;  // expected location
  bool present = false;
};

// An absent result was not measured; examine() makes no check of it.
struct DoctorInputs {
  uint32_t workers = 4;
  uint32_t shards = 2;
  std::string kernel;  // "6.1.0-18-amd64"
  uint32_t cores = 0;  // available to this process
  uint64_t memory_bytes = 0;
  uint64_t memory_available_bytes = 0;
  std::optional<Result<BlasReport>> blas;
  std::optional<Status> torch;  // loading the module that links libtorch
  std::optional<Status> fit;    // loading the model-fitting module into the same process
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
  std::string congestion_control;  // the kernel's default for TCP: "cubic"
};

// Inputs that gather() cannot measure itself.
struct DoctorQuestion {
  uint32_t workers = 4;
  uint32_t shards = 2;
  std::string run_folder = "runs";
  std::string data_dir;
  std::optional<Result<BlasReport>> blas;
  std::optional<Status> torch;
  std::optional<Status> fit;
};

// Measures this machine. ENSURES: no file, folder or socket that it created remains.
DoctorInputs gather(const DoctorQuestion& question);

// Judges the measurements. Deterministic.
std::vector<Check> examine(const DoctorInputs& inputs);

// Open files that the busiest process of a run needs. This is the coordinator or a shard. It holds
// up to four per peer (control connection, bulk connection, shared memory, process handle) and 64
// of its own.
uint64_t files_needed(uint32_t workers, uint32_t shards);

std::string_view name_of(CheckState state);

// One line per check ("ok       disk      80 GB free in runs/"), advice indented below it, and a
// last line with the verdict.
std::string to_text(const std::vector<Check>& checks);
// A JSON object with "problems", "warnings" and "checks", in one line without '\n'.
std::string to_json_line(const std::vector<Check>& checks);

// 1 if there is a problem, else 0. Warnings do not change it.
int exit_status(const std::vector<Check>& checks);

}  // namespace drover

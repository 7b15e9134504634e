// The commands of the drover program; each returns the process's exit status.
#pragma once

#include <cstdint>
#include <string>

#include "cli/train_options.h"

namespace drover {

// `command_line` is kept in the run file.
int train_command(const TrainOptions& options, const std::string& command_line);

struct RunsOptions {
  std::string run_file;
  bool json = false;
};
int runs_command(const RunsOptions& options);

struct DataOptions {
  std::string name;
  std::string data_dir;  // empty: the default place
};
int data_get_command(const DataOptions& options);

struct DoctorOptions {
  uint32_t workers = 4;
  uint32_t shards = 2;
  std::string data_dir;
  bool json = false;
};
int doctor_command(const DoctorOptions& options);

}  // namespace drover

// TaskSpec: a task by name. A job file has it, and `tasks` builds the task.
#pragma once

#include <cstdint>
#include <string>

namespace drover {

// The part of the data that each worker draws its samples from.
enum class DataPartition : uint8_t {
  kNone,    // all the data
  kRandom,  // its own n-th of the data, assigned randomly
  kLabel,   // its own n-th of the data ordered by label: few classes per worker
};

struct TaskSpec {
  std::string model = "lenet";  // logistic, mlp, mlp25m, lenet, lenet-wide, resnet20, transformer
  std::string data = "fashion-mnist";  // a known name, or a folder or file
  std::string data_dir;                // where downloaded data sets are kept
  uint64_t seed = 1;
  // Size of the generated data set, which needs no download.
  uint64_t generated_samples = 4096;
  // A gradient is computed in pieces of at most this number of samples; 0: in one piece.
  uint32_t micro_batch = 0;
  DataPartition partition = DataPartition::kNone;

  bool operator==(const TaskSpec&) const = default;
};

}  // namespace drover

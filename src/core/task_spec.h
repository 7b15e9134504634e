// TaskSpec: which task, by name. What a job file says and `tasks` builds.
#pragma once

#include <cstdint>
#include <string>

namespace drover {

// What each worker draws its samples from.
enum class DataPartition : uint8_t {
  kNone,    // all the data
  kRandom,  // its own n-th, by chance
  kLabel,   // its own n-th, ordered by label: the hard case, few classes each
};

struct TaskSpec {
  std::string model = "lenet";  // logistic, mlp, mlp25m, lenet, lenet-wide, resnet20, transformer
  std::string data = "fashion-mnist";  // a known name, or a folder or file
  std::string data_dir;                // where downloaded data sets are kept
  uint64_t seed = 1;
  // The generated data set, for runs that should need no download.
  uint64_t generated_samples = 4096;
  // A gradient is computed in pieces of at most so many samples; 0: all at once.
  uint32_t micro_batch = 0;
  DataPartition partition = DataPartition::kNone;

  bool operator==(const TaskSpec&) const = default;
};

}  // namespace drover

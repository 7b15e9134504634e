// SampleShare: which samples of each step are this worker's.
//
// A step has a stretch of the run's stream of samples, and every worker a part of it: at first
// equal ones, in the order of workers; later as the coordinator says (Share). Whose samples stay
// unused because their worker is lost does not change whose the others are.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "wire/control.h"
#include "worker/task.h"

namespace drover {

class SampleShare {
 public:
  // How many are remembered: the newest may not be in force yet.
  static constexpr size_t kKept = 2;

  // `own_part`: the worker has a part of the data to itself, and a stream of its own through it.
  SampleShare(WorkerId worker, uint32_t workers, uint32_t batch, bool own_part = false);

  void on_share(const Share& share);
  Batch batch_of(Step step) const;

 private:
  const WorkerId worker_;
  const uint32_t workers_;
  const bool own_part_;
  std::vector<Share> shares_;  // by the step that each is in force from
};

}  // namespace drover

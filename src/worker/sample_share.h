// SampleShare: the samples of each step that belong to this worker.
//
// A step uses a range of the run's stream of samples, and every worker has a part of the range:
// initially equal parts in the order of workers, later as the coordinator decides (Share). If a
// worker is lost, its samples stay unused, and the samples of other workers do not change.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "wire/control.h"
#include "worker/task.h"

namespace drover {

class SampleShare {
 public:
  // Number of shares to remember, since the newest may apply to a later step.
  static constexpr size_t kKept = 2;

  // `own_part`: the worker has its own part of the data, and its own stream of samples from it.
  SampleShare(WorkerId worker, uint32_t workers, uint32_t batch, bool own_part = false);

  void on_share(const Share& share);
  Batch batch_of(Step step) const;

 private:
  const WorkerId worker_;
  const uint32_t workers_;
  const bool own_part_;
  std::vector<Share> shares_;  // by the first step that each applies to
};

}  // namespace drover

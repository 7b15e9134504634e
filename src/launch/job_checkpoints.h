// What a job says of checkpoints, held against what is on the disk before anything is started.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/coordinator.h"
#include "core/result.h"
#include "job/job.h"
#include "node/checkpoint_saver.h"

namespace drover {

struct JobCheckpoints {
  std::optional<ResumeFrom> resume;  // absent: the run begins at step 0
  CheckpointKeeping keeping;         // without the run's id
  std::vector<std::string> news;     // for the user: what was skipped, and why
};

// Finds and reads through the checkpoint that the job goes on from, and refuses one of another
// model, data, optimiser, seed or mini-batch, naming the difference. Workers, shards, steps and
// policy may differ. Makes room for those to be written: what lies in that folder and is newer is
// set aside. `brings_model`: what is learned, and how, is the workers' to say
// (coordinator/model_agreement.h). Checkpoints of step `before` and later are left out of
// account.
Result<JobCheckpoints> prepare_checkpoints(const Job& job, bool brings_model,
                                           Version before = kEndless);

// What these mean for the coordinator.
void apply(const Job& job, const JobCheckpoints& checkpoints, CoordinatorSettings& machine);

}  // namespace drover

// Checks a job's checkpoint settings against the files on the disk, before processes are started.
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
  std::optional<ResumeFrom> resume;   // absent: the run begins at step 0
  CheckpointKeeping keeping;          // without the run's id
  std::vector<std::string> warnings;  // for the user: which checkpoints were skipped, and why
};

// Finds and verifies the checkpoint that the job resumes from. An error names the difference if it
// is of another model, data set, optimiser, seed or mini-batch; workers, shards, steps and policy
// may differ. Newer checkpoints in the folder that the run will write to are moved aside.
// `brings_model`: model, data and optimiser are the workers' (coordinator/model_agreement.h) and
// are not compared here. Checkpoints of step `before` and later are ignored.
Result<JobCheckpoints> prepare_checkpoints(const Job& job, bool brings_model,
                                           Version before = kEndless);

// Applies them to the coordinator's settings.
void apply(const Job& job, const JobCheckpoints& checkpoints, CoordinatorSettings& machine);

}  // namespace drover

// ClusterSeat: this process's part of a run on several hosts, from its meeting the others to its
// end.
#pragma once

#include <string>

#include "cli/cluster_options.h"
#include "core/result.h"
#include "node/cluster_meeting.h"
#include "node/cluster_part.h"
#include "node/job.h"
#include "node/launcher.h"

namespace drover {

// What a job has that does not say it: a worker for each rank, a shard for each host.
Job defaults_for(const Placement& placement);

// A job as it can be run there: between hosts only TCP will do.
Status fit_to(const Placement& placement, Job& job);

// "4 ranks on 2 hosts, by srun".
std::string describe(const Placement& placement);

class ClusterSeat {
 public:
  // REQUIRES: placement.of_many(). `run` is the number of a new run.
  static Result<ClusterSeat> prepare(const Placement& placement, const ClusterOptions& options,
                                     const Job& job, RunId run);

  // Waits until the coordinator is there, unless it is ours; then runs the part to its end.
  int run(const Job& job, const Crew& crew, const RunHeader& header, const Company& company);

 private:
  ClusterSeat() = default;
  Status open(RunId run);
  Status join();

  Placement placement_;
  ClusterOptions options_;
  TokenPlace place_;
  bool tcp_ = false;
  Part part_;
  TokenHost host_;
};

}  // namespace drover

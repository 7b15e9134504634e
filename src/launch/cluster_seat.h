// ClusterSeat: this process's part of a run on several hosts, from its meeting the others to its
// end.
#pragma once

#include <string>

#include "core/result.h"
#include "job/job.h"
#include "launch/cluster_meeting.h"
#include "launch/cluster_options.h"
#include "launch/cluster_part.h"
#include "launch/launcher.h"

namespace drover {

// What a job has that does not say it: a worker for each rank, a shard for each host.
Job defaults_for(const Placement& placement);

// The same with MPI, where a rank is either a shard or a worker. An error if no rank is left to be
// a worker.
Result<Job> defaults_with_mpi(const Placement& placement, uint32_t shards);

// What this process starts of it.
Duties duties_in(const Placement& placement, const Job& job);

// Whether the others of the run, or some that come later, have to be met.
bool has_others(const Placement& placement, const Job& job);

// A job as it can be run there: between hosts only TCP will do, or MPI where its launcher is.
Status fit_to(const Placement& placement, const ClusterOptions& options, Job& job);

// "4 ranks on 2 hosts, by srun".
std::string describe(const Placement& placement);

class ClusterSeat {
 public:
  // REQUIRES: has_others(). `run` is the number of a new run.
  static Result<ClusterSeat> prepare(const Placement& placement, const ClusterOptions& options,
                                     const Job& job, RunId run);

  // Waits until the coordinator is there, unless it is ours; then runs the part to its end.
  // `tell`: say on the terminal how others can join.
  int run(const Job& job, const WorkerFactory& factory, const RunHeader& header,
          const Company& company, bool tell);

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

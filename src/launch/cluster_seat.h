// ClusterSeat: this launcher's part of a run on several hosts, from finding the other parts to the
// end of the run.
#pragma once

#include <string>

#include "core/result.h"
#include "job/job.h"
#include "launch/cluster_meeting.h"
#include "launch/cluster_options.h"
#include "launch/cluster_part.h"
#include "launch/launcher.h"

namespace drover {

// Default numbers of workers and shards: a worker for each rank, a shard for each host.
Job defaults_for(const Placement& placement);

// The same with MPI, where a rank is either a shard or a worker. An error if no rank is left to be
// a worker.
Result<Job> defaults_with_mpi(const Placement& placement, uint32_t shards);

// The duties of this launcher.
Duties duties_in(const Placement& placement, const Job& job);

// Whether the run has processes that this launcher does not start, now or later.
bool has_others(const Placement& placement, const Job& job);

// Sets the transport: between hosts it must be TCP, or MPI under a launcher that supports it. An
// error if the job requires another one.
Status fit_to(const Placement& placement, const ClusterOptions& options, Job& job);

// "4 ranks on 2 hosts, by srun".
std::string describe(const Placement& placement);

class ClusterSeat {
 public:
  // REQUIRES: has_others(). `run` is the number of a new run.
  static Result<ClusterSeat> prepare(const Placement& placement, const ClusterOptions& options,
                                     const Job& job, RunId run);

  // Waits for the coordinator if it is in another part, then runs this part to its end and returns
  // the exit status. `print_invitation`: print the command with which workers can join.
  int run(const Job& job, const WorkerFactory& factory, const RunHeader& header,
          const Company& company, bool print_invitation);

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

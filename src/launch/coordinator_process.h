// The coordinator's process: one incarnation of the coordinator after another, until the run has
// ended.
#pragma once

#include <sys/types.h>

#include <optional>

#include "coordinator/coordinator.h"
#include "core/peer.h"
#include "core/result.h"
#include "core/time.h"
#include "job/job.h"
#include "launch/cluster_part.h"
#include "launch/launcher.h"
#include "launch/process_group.h"
#include "node/checkpoint_saver.h"
#include "node/coordinator_node.h"
#include "store/run_header.h"
#include "store/run_writer.h"

namespace drover {

inline constexpr Peer kCoordinatorPeer{Role::kCoordinator, 0};

// What every incarnation of the coordinator is made of. What it refers to outlives the process.
struct CoordinatorParts {
  const Part& part;
  const Job& job;
  const WorkerFactory& factory;
  const RunHeader& header;
  const Company& company;
  int listening_fd = -1;
  int exits_fd = -1;
  pid_t launcher = -1;
  TimePoint began{};  // of the run
};

// What the next incarnation begins with.
struct Prepared {
  CoordinatorSettings machine;
  CheckpointKeeping checkpoints;
};

// For the first one. An error: the job or its checkpoints make no sense. Checkpoints of step
// `before` and later are left out of account.
Result<Prepared> prepare(const CoordinatorParts& of, const Job& job, Version before = kEndless);
// For another one: a run that starts over continues from its own newest checkpoint; without one,
// from where it began.
Result<Prepared> prepare_again(const CoordinatorParts& of);

class CoordinatorIncarnations {
 public:
  // `prepared`: for the first one; absent: the process before this one was killed. REQUIRES: the
  // others outlive this.
  CoordinatorIncarnations(const CoordinatorParts& of, std::optional<Prepared> prepared,
                          RunWriter& writer, RunView& view)
      : of_(of), prepared_(std::move(prepared)), writer_(writer), view_(view) {}

  // ENSURES: how the run ended is in the run file, as far as that can be written.
  RunEnd run();

 private:
  Status prepare_next(const std::optional<ResumeFrom>& committed);
  Status take_over();
  Result<IncarnationEnd> run_next();
  RunEnd fail(const Error& error);

  const CoordinatorParts& of_;
  std::optional<Prepared> prepared_;
  RunWriter& writer_;
  RunView& view_;
  std::optional<TimePoint> training_since_;
};

// Starts the process and waits until it has made the run file. False: it could not, and has said
// why. REQUIRES: what `of` refers to stays where it is while the group lives.
Result<bool> start_coordinator(ProcessGroup& processes, const CoordinatorParts& of);

}  // namespace drover

// The coordinator's process: runs one incarnation of the coordinator after another, until the run
// has ended.
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

// What every incarnation of the coordinator is made of. REQUIRES: the references stay valid in the
// process.
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

// The settings of the next incarnation.
struct Prepared {
  CoordinatorSettings machine;
  CheckpointKeeping checkpoints;
};

// For the first incarnation. An error: the job or its checkpoints are invalid. Checkpoints of step
// `before` and later are ignored.
Result<Prepared> prepare(const CoordinatorParts& of, const Job& job, Version before = kEndless);
// For a further incarnation: a run that restarts continues from its own newest checkpoint; without
// one, from its first step.
Result<Prepared> prepare_again(const CoordinatorParts& of);

class CoordinatorIncarnations {
 public:
  // `prepared`: for the first incarnation; absent: an earlier coordinator process was killed.
  // REQUIRES: the other arguments outlive this.
  CoordinatorIncarnations(const CoordinatorParts& of, std::optional<Prepared> prepared,
                          RunWriter& writer, RunView& view)
      : of_(of), prepared_(std::move(prepared)), writer_(writer), view_(view) {}

  // ENSURES: the run's end is in the run file, unless that cannot be written.
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

// Starts the process and waits until it has made the run file. False: it could not, and has logged
// the reason. REQUIRES: the references of `of` stay valid while the group exists.
Result<bool> start_coordinator(ProcessGroup& processes, const CoordinatorParts& of);

}  // namespace drover

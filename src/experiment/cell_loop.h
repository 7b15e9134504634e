// The loop that runs the cells of an experiment: simulated ones several at once, real ones alone.
//
// It does not handle processes: a CellHost starts cells and reports their ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"

namespace drover {

enum class CellEnding : uint8_t {
  kKept,         // the run has ended by itself (completed or failed) and has a run file
  kFailed,       // there is no run file
  kInterrupted,  // the cell was stopped and has to run again
};

struct EndedCell {
  size_t cell = 0;  // as in CellHost::start
  CellEnding ending = CellEnding::kKept;
  std::string reason;    // why the cell or its run failed; else empty
  double seconds = 0.0;  // duration
};

class CellHost {
 public:
  virtual ~CellHost() = default;
  virtual Status start(size_t cell) = 0;
  // The cells that have ended since the last call; waits briefly if there is none.
  // REQUIRES: a cell is running.
  virtual Result<std::vector<EndedCell>> wait() = 0;
  // Whether the user has interrupted; then no more cells are started.
  virtual bool interrupted() = 0;
  // Asks all running cells to end. wait() reports their ends.
  virtual void stop_all() = 0;
};

struct CellToRun {
  size_t cell = 0;
  bool alone = false;  // no other cell may run at the same time
};

// Runs the cells in this order, at most `jobs` at once. Returns when all have ended; after an
// interruption or an error of the host, when all started ones have ended. Calls `on_ended` for each
// ended cell, and `on_change` a few times a second.
Status run_cells(const std::vector<CellToRun>& cells, size_t jobs, CellHost& host,
                 const std::function<void(const EndedCell&)>& on_ended,
                 const std::function<void(const std::vector<size_t>& running)>& on_change);

}  // namespace drover

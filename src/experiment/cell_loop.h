// The loop that runs the cells of an experiment: simulated ones several at once, real ones alone.
//
// It knows no processes: somebody else starts a cell and says when one has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"

namespace drover {

enum class CellEnding : uint8_t {
  kKept,         // the run has ended by itself, well or badly, and is recorded
  kFailed,       // there is no run to look at
  kInterrupted,  // it was stopped, and is still to be done
};

struct EndedCell {
  size_t cell = 0;  // as in CellHost::start
  CellEnding ending = CellEnding::kKept;
  std::string reason;    // why it, or its run, failed; else empty
  double seconds = 0.0;  // how long it took
};

class CellHost {
 public:
  virtual ~CellHost() = default;
  virtual Status start(size_t cell) = 0;
  // Those that have ended since; waits a moment for one. Called only while one is running.
  virtual Result<std::vector<EndedCell>> wait() = 0;
  // The user wants to stop: no more cells are started.
  virtual bool interrupted() = 0;
  // Asks all that are running to end, which wait() tells.
  virtual void stop_all() = 0;
};

struct CellToRun {
  size_t cell = 0;
  bool alone = false;  // nothing else may run meanwhile
};

// In that order, at most `jobs` at once. Returns when all have ended, or all that were started
// after an interruption or trouble of the host's. `on_ended` is told of each, `on_change` whenever
// something has changed or a moment has passed.
Status run_cells(const std::vector<CellToRun>& cells, size_t jobs, CellHost& host,
                 const std::function<void(const EndedCell&)>& on_ended,
                 const std::function<void(const std::vector<size_t>& running)>& on_change);

}  // namespace drover

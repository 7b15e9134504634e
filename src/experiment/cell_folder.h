// The folder of an experiment: which cells are there, which failed, and whether they are the ones
// that the experiment describes.
//
//   cells/NAME.cell    what the cell is (Cell::identity), written before it starts
//   cells/NAME.db      its run file, renamed to this when the run has ended by itself
//   cells/NAME.failed  instead of it: why there is none
//   cells/NAME.log     what the run said on standard error, if anything
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "experiment/experiment_plan.h"

namespace drover {

enum class CellState : uint8_t { kMissing, kDone, kFailed };

class CellFolder {
 public:
  explicit CellFolder(std::string path) : path_(std::move(path)) {}
  ~CellFolder();
  CellFolder(const CellFolder&) = delete;
  CellFolder& operator=(const CellFolder&) = delete;

  // Makes the folder and keeps it for this process alone. Refuses one that has cells already,
  // unless `resume`, and then one whose cells are not those of the plan.
  Status open(const std::vector<Cell>& cells, bool resume);

  CellState state(const Cell& cell) const;
  // Why it failed without a run file; "" if it did not.
  std::string failure(const Cell& cell) const;

  // Where the cell's run is to be recorded while it goes.
  std::string part(const Cell& cell) const { return file(cell, ".db.part"); }
  std::string run_file(const Cell& cell) const { return file(cell, ".db"); }
  std::string log(const Cell& cell) const { return file(cell, ".log"); }

  // Before a cell starts: removes what an earlier try left, and says what it will be.
  Status begin(const Cell& cell) const;
  // The run has ended by itself, and is recorded.
  Status keep(const Cell& cell) const;
  // There is no run to keep.
  Status fail(const Cell& cell, const std::string& reason) const;
  // It was interrupted: nothing is left of it.
  void drop(const Cell& cell) const;
  // When nobody looks at cells any more: whoever did may have left something beside them.
  void tidy(const std::vector<Cell>& cells) const;

  const std::string& path() const { return path_; }

 private:
  std::string file(const Cell& cell, const char* ending) const;
  bool has_cells() const;
  Status check_same(const std::vector<Cell>& cells) const;

  const std::string path_;
  int lock_ = -1;
};

}  // namespace drover

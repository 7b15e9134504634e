// The folder of an experiment: the state of each cell, and whether it is a cell of this experiment.
//
//   cells/NAME.cell    the cell's identity (Cell::identity), written before it starts
//   cells/NAME.db      its run file, renamed to this when the run has ended by itself
//   cells/NAME.failed  the reason why there is no run file
//   cells/NAME.log     the run's standard error, if any
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

  // Creates and locks the folder. Without `resume`, fails if it has cells. With `resume`, fails if
  // its cells differ from those of the plan.
  Status open(const std::vector<Cell>& cells, bool resume);

  CellState state(const Cell& cell) const;
  // The reason why the cell has no run file; "" if it did not fail.
  std::string failure(const Cell& cell) const;

  // The run file while the cell is running.
  std::string part(const Cell& cell) const { return file(cell, ".db.part"); }
  std::string run_file(const Cell& cell) const { return file(cell, ".db"); }
  std::string log(const Cell& cell) const { return file(cell, ".log"); }

  // Call before a cell starts. Removes files of an earlier attempt and writes the identity.
  Status begin(const Cell& cell) const;
  // Marks a cell as done, after its run has ended by itself.
  Status keep(const Cell& cell) const;
  // Marks a cell as failed, without a run file.
  Status fail(const Cell& cell, const std::string& reason) const;
  // Removes the files of an interrupted cell.
  void drop(const Cell& cell) const;
  // Removes SQLite's side files that readers have left. Call when there are no readers any more.
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

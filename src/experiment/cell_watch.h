// CellWatch: which cell of a running experiment a page should show.
//
// One that is running, and always the same until it ends; then the one that began last, also if it
// has ended meanwhile. It sees only the folder: whoever runs the cells is another process.
#pragma once

#include <optional>
#include <vector>

#include "experiment/cell_folder.h"
#include "view/run_follower.h"

namespace drover {

class CellWatch {
 public:
  // The three must outlive it.
  CellWatch(const ExperimentFile& file, const std::vector<Cell>& cells, const CellFolder& folder);

  // While no cell is running it stays with the one before: its finished run, or why there is none.
  WatchedRun operator()();

 private:
  bool runs(size_t cell) const;
  // The last in the order of the plan, in which they begin.
  std::optional<size_t> newest() const;

  const ExperimentFile* file_;
  const std::vector<Cell>* cells_;
  const CellFolder* folder_;
  std::vector<bool> was_there_;  // before anything began
  std::optional<size_t> shown_;
};

}  // namespace drover

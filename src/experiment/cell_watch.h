// CellWatch: selects the cell of a running experiment that the dashboard shows.
//
// It shows a running cell until that ends, and then the cell that started last, even if it has
// ended meanwhile. It reads only the folder, because another process runs the cells.
#pragma once

#include <optional>
#include <vector>

#include "experiment/cell_folder.h"
#include "view/run_follower.h"

namespace drover {

class CellWatch {
 public:
  // The arguments must outlive it.
  CellWatch(const ExperimentFile& file, const std::vector<Cell>& cells, const CellFolder& folder);

  // The run to show. While no cell is running, this is the last one: its finished run, or the
  // reason why there is none.
  WatchedRun operator()();

 private:
  bool is_running(size_t cell) const;
  // The cell that started last. Cells start in the order of the plan.
  std::optional<size_t> newest() const;

  const ExperimentFile* file_;
  const std::vector<Cell>* cells_;
  const CellFolder* folder_;
  std::vector<bool> existed_;  // by cell: done or failed before the experiment started
  std::optional<size_t> shown_;
};

}  // namespace drover

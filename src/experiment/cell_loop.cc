#include "experiment/cell_loop.h"

#include <algorithm>

namespace drover {

Status run_cells(const std::vector<CellToRun>& cells, size_t jobs, CellHost& host,
                 const std::function<void(const EndedCell&)>& on_ended,
                 const std::function<void(const std::vector<size_t>& running)>& on_change) {
  Status trouble = done();
  std::vector<size_t> running;
  bool alone = false;  // the running cell must run alone
  bool stopping = false;
  auto next = cells.begin();
  const auto may_start = [&] {
    if (stopping || next == cells.end()) return false;
    if (running.empty()) return true;
    return !alone && !next->alone && running.size() < jobs;
  };
  while (true) {
    if (!stopping && (!trouble || host.interrupted())) {
      stopping = true;
      if (!running.empty()) host.stop_all();
    }
    if (may_start()) {
      alone = next->alone;
      trouble = host.start(next->cell);
      if (trouble) running.push_back((next++)->cell);
      continue;
    }
    if (running.empty()) return trouble;
    on_change(running);
    auto ended = host.wait();
    if (!ended) return ended.error();
    for (const EndedCell& each : ended.value()) {
      std::erase(running, each.cell);
      on_ended(each);
    }
  }
}

}  // namespace drover

#include "experiment/cell_watch.h"

#include <filesystem>

namespace drover {

CellWatch::CellWatch(const ExperimentFile& file, const std::vector<Cell>& cells,
                     const CellFolder& folder)
    : file_(&file), cells_(&cells), folder_(&folder) {
  for (const Cell& cell : cells) existed_.push_back(folder.state(cell) != CellState::kMissing);
}

bool CellWatch::is_running(size_t cell) const {
  std::error_code ignored;
  return std::filesystem::exists(folder_->part((*cells_)[cell]), ignored);
}

std::optional<size_t> CellWatch::newest() const {
  for (size_t i = cells_->size(); i > 0; --i) {
    if (is_running(i - 1)) return i - 1;
  }
  for (size_t i = cells_->size(); i > 0 && (!shown_ || i - 1 > *shown_); --i) {
    if (!existed_[i - 1] && folder_->state((*cells_)[i - 1]) == CellState::kDone) return i - 1;
  }
  return std::nullopt;
}

WatchedRun CellWatch::operator()() {
  if (!shown_ || !is_running(*shown_)) {
    if (const auto found = newest()) shown_ = found;
  }
  if (!shown_) return {};
  const Cell& cell = (*cells_)[*shown_];
  WatchedRun run{.file = folder_->part(cell),
                 .place = {.title = title_of(*file_, cell),
                           .number = static_cast<uint32_t>(*shown_ + 1),
                           .of = static_cast<uint32_t>(cells_->size())}};
  if (is_running(*shown_)) return run;
  switch (folder_->state(cell)) {
    case CellState::kDone:
      run.file = folder_->run_file(cell);
      break;
    case CellState::kFailed:
      run.gone = "this cell failed and has no run file: " + folder_->failure(cell);
      break;
    case CellState::kMissing:
      run.gone = "this cell was interrupted and has no run file";
      break;
  }
  return run;
}

}  // namespace drover

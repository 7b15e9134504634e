#include "forecast/learned/history.h"

#include <algorithm>

#include "core/check.h"

namespace drover {

void History::add(Step step, std::span<const PastTime> row) {
  DROVER_CHECK(steps_.empty() || step > steps_.back());
  DROVER_CHECK(row.size() >= workers_);
  if (row.size() > workers_) {
    // New workers took no part in earlier steps.
    const auto more = static_cast<uint32_t>(row.size());
    std::vector<PastTime> wider(steps_.size() * more);
    for (size_t i = 0; i < steps_.size(); ++i) {
      std::copy_n(cells_.begin() + static_cast<ptrdiff_t>(i * workers_), workers_,
                  wider.begin() + static_cast<ptrdiff_t>(i * more));
    }
    cells_ = std::move(wider);
    workers_ = more;
  }
  steps_.push_back(step);
  cells_.insert(cells_.end(), row.begin(), row.end());
  // Removes many steps at once, so that the amortised cost is small.
  if (cells_.size() > most_cells_ + most_cells_ / 4 && steps_.size() > 1) {
    const size_t kept = std::max<size_t>(1, most_cells_ / workers_);
    const size_t gone = steps_.size() - std::min(kept, steps_.size());
    steps_.erase(steps_.begin(), steps_.begin() + static_cast<ptrdiff_t>(gone));
    cells_.erase(cells_.begin(), cells_.begin() + static_cast<ptrdiff_t>(gone * workers_));
  }
}

bool History::correct(Step step, WorkerId worker, float log_time) {
  const auto found = std::lower_bound(steps_.begin(), steps_.end(), step);
  if (found == steps_.end() || *found != step || worker >= workers_) return false;
  PastTime& time = cells_[static_cast<size_t>(found - steps_.begin()) * workers_ + worker];
  if (time.known != Known::kLonger) return false;
  const float truth = std::max(time.bound, log_time);
  time = {truth, truth, Known::kArrived};
  return true;
}

void History::believe_all() {
  for (PastTime& time : cells_) {
    if (time.known != Known::kLonger) continue;
    time = {time.log_time, time.log_time, Known::kArrived};
  }
}

History History::part(size_t begin, size_t end) const {
  DROVER_CHECK(begin <= end);
  DROVER_CHECK(end <= steps());
  History part(most_cells_);
  part.workers_ = workers_;
  part.steps_.assign(steps_.begin() + static_cast<ptrdiff_t>(begin),
                     steps_.begin() + static_cast<ptrdiff_t>(end));
  part.cells_.assign(cells_.begin() + static_cast<ptrdiff_t>(begin * workers_),
                     cells_.begin() + static_cast<ptrdiff_t>(end * workers_));
  return part;
}

}  // namespace drover

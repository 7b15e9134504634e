#include "cli/experiment_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "node/clock.h"

namespace drover {

void TimeEstimate::on_ended(const EndedCell& ended) {
  if (ended.ending != CellEnding::kKept) return;
  for (Took* took : {&places_[cells_[ended.cell].place], &all_}) {
    took->seconds += ended.seconds;
    ++took->cells;
  }
}

double TimeEstimate::left(const std::vector<size_t>& left,
                          const std::map<size_t, double>& running) const {
  if (all_.cells == 0) return -1.0;
  double concurrent = 0.0;  // seconds of simulated cells, which run several at once
  double sequential = 0.0;  // seconds of real cells, which run alone
  for (const size_t index : left) {
    const Cell& cell = cells_[index];
    const auto place = places_.find(cell.place);
    const Took& took = place != places_.end() && place->second.cells > 0 ? place->second : all_;
    double seconds = took.seconds / static_cast<double>(took.cells);
    if (const auto since = running.find(index); since != running.end())
      seconds = std::max(0.0, seconds - since->second);
    (cell.real ? sequential : concurrent) += seconds;
  }
  return sequential + concurrent / static_cast<double>(std::max<size_t>(1, jobs_));
}

std::string grid_line(const GridState& state, size_t width) {
  const std::string running =
      state.running.empty() ? ""
      : state.running.size() == 1
          ? "running " + state.running.front()
          : fmt::format("running {} and {} more", state.running.front(), state.running.size() - 1);
  return join_parts({{progress_bar(state.done, state.cells), 1},
                     {fmt::format("{}/{} cells", state.done, state.cells), 5},
                     {state.failed > 0 ? fmt::format("{} failed", state.failed) : std::string(), 3},
                     {state.seconds_left >= 0.0 ? time_left(state.seconds_left) : std::string(), 4},
                     {running, 2}},
                    width);
}

ExperimentProgress::ExperimentProgress(const ExperimentFile& file, const std::vector<Cell>& cells,
                                       const std::vector<size_t>& todo, size_t jobs,
                                       ProgressStyle style)
    : file_(file), cells_(cells), line_(style), estimate_(cells, jobs), left_(todo) {
  state_.cells = cells.size();
  state_.done = cells.size() - todo.size();
}

double ExperimentProgress::seconds_left() const {
  std::map<size_t, double> since;
  for (const auto& [cell, began] : began_) since[cell] = seconds(clock_now() - began);
  return estimate_.left(left_, since);
}

void ExperimentProgress::on_change(const std::vector<size_t>& running) {
  state_.running.clear();
  for (const size_t cell : running) {
    began_.try_emplace(cell, clock_now());
    state_.running.push_back(title_of(file_, cells_[cell]));
  }
  if (line_.style() != ProgressStyle::kTerminal || !line_.due()) return;
  state_.seconds_left = seconds_left();
  line_.show([&](size_t width) { return grid_line(state_, width); });
}

void ExperimentProgress::on_ended(const EndedCell& ended) {
  std::erase(left_, ended.cell);
  began_.erase(ended.cell);
  estimate_.on_ended(ended);
  const std::string title = title_of(file_, cells_[ended.cell]);
  if (ended.ending == CellEnding::kInterrupted) return;
  ++state_.done;
  const bool failed = !ended.reason.empty();
  state_.failed += failed ? 1 : 0;
  if (line_.style() == ProgressStyle::kNone) return;
  if (line_.style() == ProgressStyle::kTerminal) {
    if (!failed) return;
    line_.clear();
    fmt::print(stderr, "drover: {} failed: {}\n", title, ended.reason);
    return;
  }
  const double left = seconds_left();
  fmt::print(stderr, "{}/{}  {}: {}{}\n", state_.done, state_.cells, title,
             failed ? "failed: " + ended.reason : fmt::format("done in {:.1f} s", ended.seconds),
             left > 0.0 && !left_.empty() ? ", " + time_left(left) : "");
  std::fflush(stderr);
}

void ExperimentProgress::finish() { line_.clear(); }

}  // namespace drover

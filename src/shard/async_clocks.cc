#include "shard/async_clocks.h"

#include <algorithm>

namespace drover {

AsyncClocks::AsyncClocks(uint32_t workers, size_t blocks, std::optional<uint64_t> staleness)
    : blocks_(blocks), staleness_(staleness), clocks_(workers) {}

void AsyncClocks::on_joined(WorkerId worker) {
  const auto arrival = clocks_[worker].arrival;  // of its earlier incarnation, not reported yet
  clocks_[worker] = WorkerClock{.arrival = arrival};
}

void AsyncClocks::set_if_unknown(WorkerId worker, Step clock) {
  if (!clocks_[worker].clock) clocks_[worker].clock = clock;
}

void AsyncClocks::on_served(WorkerId worker, TimePoint now) { clocks_[worker].served = now; }

bool AsyncClocks::on_block(WorkerId worker, Step step, bool used, TimePoint now) {
  WorkerClock& state = clocks_[worker];
  if (state.step != step || state.blocks == 0) {
    state.step = step;
    state.blocks = state.used = 0;
  }
  ++state.blocks;
  if (used) ++state.used;
  if (state.blocks < blocks_) return false;
  state.clock = std::max(state.clock.value_or(0), step + 1);
  if (state.used == blocks_) state.arrival = now - state.served;
  state.blocks = state.used = 0;
  return true;
}

bool AsyncClocks::find_slowest(const Membership& members) {
  if (!staleness_) return false;
  std::optional<Step> slowest;
  for (WorkerId worker = 0; worker < clocks_.size(); ++worker) {
    const auto& clock = clocks_[worker].clock;
    if (clock && members.has(worker)) slowest = std::min(slowest.value_or(*clock), *clock);
  }
  const Step before = slowest_;
  slowest_ = slowest.value_or(slowest_);
  return slowest_ > before;
}

std::vector<StepClosed::Arrival> AsyncClocks::take_arrivals(Step step) {
  std::vector<StepClosed::Arrival> arrivals;
  for (WorkerId worker = 0; worker < clocks_.size(); ++worker) {
    auto& arrival = clocks_[worker].arrival;
    if (arrival) arrivals.push_back({worker, *arrival, step});
    arrival.reset();
  }
  return arrivals;
}

}  // namespace drover

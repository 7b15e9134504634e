#include "shard/async_clocks.h"

#include <algorithm>

namespace drover {

AsyncClocks::AsyncClocks(uint32_t workers, size_t blocks, std::optional<uint64_t> staleness)
    : blocks_(blocks), staleness_(staleness), runners_(workers) {}

void AsyncClocks::on_joined(WorkerId worker) {
  const auto arrival = runners_[worker].arrival;  // of its earlier incarnation, not reported yet
  runners_[worker] = Runner{.arrival = arrival};
}

void AsyncClocks::place(WorkerId worker, Step clock) {
  if (!runners_[worker].clock) runners_[worker].clock = clock;
}

void AsyncClocks::on_served(WorkerId worker, TimePoint now) { runners_[worker].served = now; }

bool AsyncClocks::on_block(WorkerId worker, Step step, bool used, TimePoint now) {
  Runner& runner = runners_[worker];
  if (runner.step != step || runner.blocks == 0) {
    runner.step = step;
    runner.blocks = runner.used = 0;
  }
  ++runner.blocks;
  if (used) ++runner.used;
  if (runner.blocks < blocks_) return false;
  runner.clock = std::max(runner.clock.value_or(0), step + 1);
  if (runner.used == blocks_) runner.arrival = now - runner.served;
  runner.blocks = runner.used = 0;
  return true;
}

bool AsyncClocks::find_slowest(const Membership& members) {
  if (!staleness_) return false;
  std::optional<Step> slowest;
  for (WorkerId worker = 0; worker < runners_.size(); ++worker) {
    const auto& clock = runners_[worker].clock;
    if (clock && members.has(worker)) slowest = std::min(slowest.value_or(*clock), *clock);
  }
  const Step before = slowest_;
  slowest_ = slowest.value_or(slowest_);
  return slowest_ > before;
}

std::vector<StepClosed::Arrival> AsyncClocks::take_arrivals(Step step) {
  std::vector<StepClosed::Arrival> arrivals;
  for (WorkerId worker = 0; worker < runners_.size(); ++worker) {
    auto& arrival = runners_[worker].arrival;
    if (arrival) arrivals.push_back({worker, *arrival, step});
    arrival.reset();
  }
  return arrivals;
}

}  // namespace drover

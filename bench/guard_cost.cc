// Measures the cost of --guard norm in a shard: steps of one block, received and closed, with and
// without the guard, in turns, for gradients that were received and gradients in shared memory.
//   guard_cost [WORKERS [FLOATS]]
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "shard/shard_block.h"

namespace drover {
namespace {

constexpr int kRounds = 21;
constexpr int kSteps = 60;  // in each

class BlockSteps {
 public:
  BlockSteps(GuardRule rule, bool shared, uint32_t workers, uint32_t floats)
      : shared_(shared), members_(workers), layout_({{"one", floats, TensorKind::kTrained}}) {
    const Plan plan{.workers = workers,
                    .steps = ~Step{0},
                    .learning = {.optimizer = {.kind = OptimizerKind::kMomentum},
                                 .schedule = {.base = 1e-6},
                                 .guard = rule},
                    .tensors = layout_.tensors(),
                    .blocks = plan_blocks(layout_, 1, floats)};
    block_ = std::make_unique<ShardBlock>(plan.blocks.blocks[0], plan, &pool_, &pool_);
    block_->start(std::vector<float>(floats, 0.0F));
    for (uint32_t worker = 0; worker < workers; ++worker) {
      auto gradient = std::make_shared<FloatBuffer>(floats);
      for (size_t i = 0; i < floats; ++i)
        gradient->data()[i] = 1e-3F * static_cast<float>((i * 2654435761u + worker) % 1000);
      gradients_.push_back(std::move(gradient));
    }
  }

  double seconds_per_step() {
    const auto began = std::chrono::steady_clock::now();
    for (int step = 0; step < kSteps; ++step) {
      for (WorkerId worker = 0; worker < gradients_.size(); ++worker)
        block_->add(worker, 1, view(worker));
      block_->publish(1e-6);
      block_->next_version(members_);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    return took.count() / kSteps;
  }

 private:
  ConstBuffer view(WorkerId worker) {
    const SharedBuffer& gradient = gradients_[worker];
    if (!shared_) return gradient;
    return std::make_shared<FloatBuffer>(gradient->data(), gradient->size(), gradient,
                                         Stamp{&word_, 0});
  }

  const bool shared_;
  const Membership members_;
  const Layout layout_;
  std::atomic<uint64_t> word_{0};
  BufferPool pool_;
  std::unique_ptr<ShardBlock> block_;
  std::vector<SharedBuffer> gradients_;
};

void measure(bool shared, uint32_t workers, uint32_t floats) {
  BlockSteps off(GuardRule::kOff, shared, workers, floats);
  BlockSteps on(GuardRule::kNorm, shared, workers, floats);
  std::vector<double> ratios;
  std::vector<double> plain;
  off.seconds_per_step();
  on.seconds_per_step();
  for (int round = 0; round < kRounds; ++round) {
    const double without = off.seconds_per_step();
    const double with = on.seconds_per_step();
    plain.push_back(without);
    ratios.push_back(with / without);
  }
  std::sort(ratios.begin(), ratios.end());
  std::sort(plain.begin(), plain.end());
  fmt::print(
      "{} workers, block of {} floats, {}: {:.1f} us a step without, times {:.2f} "
      "({:.2f}-{:.2f})\n",
      workers, floats, shared ? "in shared memory" : "received", 1e6 * plain[kRounds / 2],
      ratios[kRounds / 2], ratios.front(), ratios.back());
}

}  // namespace
}  // namespace drover

int main(int count, char** words) {
  const auto number = [&](int place, uint32_t by_default) {
    return count > place ? static_cast<uint32_t>(std::atoi(words[place])) : by_default;
  };
  for (const bool shared : {false, true}) drover::measure(shared, number(1, 8), number(2, 65'536));
  return 0;
}

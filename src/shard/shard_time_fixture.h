// ShardTimeTest: a fixture with a shard of two blocks, and workers in virtual time, for tests of
// time limits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "shard/shard.h"

namespace drover {

// How long a step waits; times are in nanoseconds.
struct TestWait {
  uint32_t cutoff = 1;
  double time_limit = 0.0;  // none
  uint32_t at_least = 1;
};

class ShardTimeTest : public ::testing::Test {
 protected:
  void start(uint32_t workers, Step steps = 100) {
    const Layout layout({{"a", 4, TensorKind::kTrained}, {"b", 4, TensorKind::kTrained}});
    workers_ = workers;
    shard_.on_plan({.workers = workers,
                    .steps = steps,
                    .tensors = layout.tensors(),
                    .blocks = plan_blocks(layout, 1)});
    for (WorkerId worker = 0; worker < workers; ++worker) shard_.on_joined(worker, out_);
    for (const BlockId block : {0u, 1u}) push_block(0, kInitialStep, block, 0);
  }

  void push_block(WorkerId worker, Step step, BlockId block, uint32_t samples = 1) {
    const FrameHeader header{.type = FrameType::kOffer,
                             .step = step,
                             .worker = worker,
                             .block = block,
                             .samples = samples,
                             .length = 16};
    SharedBuffer values = shard_.pool().take(4);
    std::fill(values->span().begin(), values->span().end(), 1.0f);
    ASSERT_TRUE(shard_.on_frame(worker, header, std::move(values), now_, out_).ok());
  }
  void push(WorkerId worker, Step step) {
    for (const BlockId block : {0u, 1u}) push_block(worker, step, block);
  }

  void decide(Step step, const TestWait& wait) {
    Decision decision{.step = step,
                      .cutoff = wait.cutoff,
                      .time_limit = Duration(static_cast<int64_t>(wait.time_limit)),
                      .at_least = wait.at_least};
    for (WorkerId worker = 0; worker < workers_; ++worker) decision.alive.push_back(worker);
    shard_.on_decision(decision, now_, out_);
  }

  // Advances the clock to `when`, and calls on_time() whenever the shard asks to be woken.
  void wait_until(TimePoint when) {
    while (const auto wake = shard_.wake_at()) {
      if (*wake >= when) break;
      now_ = std::max(now_, *wake);
      shard_.on_time(now_, out_);
    }
    now_ = when;
  }

  template <typename Message>
  std::vector<Message> take() {
    std::vector<Message> found;
    for (const Outgoing& each : out_) {
      const auto* control = std::get_if<Control>(&each.frame.payload);
      if (control == nullptr) continue;
      if (const auto* message = std::get_if<Message>(control)) found.push_back(*message);
    }
    out_.clear();
    return found;
  }

  uint32_t workers_ = 0;
  Shard shard_{0};
  Outbox out_;
  TimePoint now_{};
};

}  // namespace drover

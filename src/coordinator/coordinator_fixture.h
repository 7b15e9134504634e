// CoordinatorTest: a fixture with a coordinator, its policy, and its output so far.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/coordinator.h"
#include "coordinator/fixed_policy.h"

namespace drover {

using namespace std::chrono_literals;

class CoordinatorTest : public ::testing::Test {
 protected:
  explicit CoordinatorTest(CoordinatorSettings settings = {.workers = 2, .shards = 2, .steps = 3})
      : coordinator_(settings,
                     settings.asynchronous ? nullptr : std::make_unique<FixedPolicy>(&policy_),
                     0s) {
    if (settings.resume) policy_.first = settings.resume->step;
  }

  Hello shard(uint32_t index) {
    return {.role = Role::kShard,
            .index = index,
            .host = "here",
            .pid = 10 + index,
            .address = "unix:s" + std::to_string(index)};
  }
  Hello worker(uint32_t index) {
    return {.role = Role::kWorker,
            .index = index,
            .host = "here",
            .pid = 20 + index,
            .tensors = {{"w", 64, {}}, {"b", 32, {}}}};
  }
  Hello evaluator() {
    Hello hello = worker(0);
    hello.role = Role::kEvaluator;
    return hello;
  }

  Status hello(const Hello& peer) { return coordinator_.on_hello(peer, now_, out_); }
  void receive(Role role, uint32_t index, const Control& message) {
    const Status status = coordinator_.on_message(role, index, message, now_, out_);
    EXPECT_TRUE(status.ok()) << status.error().message;
  }

  void gather() {
    for (const Hello& peer : {shard(0), shard(1), worker(0), worker(1), evaluator()})
      ASSERT_TRUE(hello(peer).ok());
    for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, Ready{});
    for (const uint32_t index : {0u, 1u}) receive(Role::kWorker, index, Ready{});
  }

  void close(Step step, const std::vector<WorkerId>& arrived,
             std::vector<StepClosed::Refused> refused = {}) {
    StepClosed closed;
    closed.step = step;
    closed.elapsed = 10ms;
    closed.samples = 8;
    closed.refused = std::move(refused);
    for (const WorkerId each : arrived) closed.arrivals.push_back({each, 10ms, step});
    for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, closed);
  }

  void report(Step step, const std::vector<WorkerId>& workers) {
    for (const WorkerId each : workers)
      receive(Role::kWorker, each, StepReport{.step = step, .samples = 4, .loss = 1.0 + each});
  }

  template <typename Message>
  std::vector<std::pair<Address, Message>> sent() const {
    std::vector<std::pair<Address, Message>> found;
    for (const Outgoing& each : out_.messages) {
      if (const auto* control = std::get_if<Control>(&each.frame.payload)) {
        if (const auto* message = std::get_if<Message>(control))
          found.emplace_back(each.to, *message);
      }
    }
    return found;
  }
  template <typename Record>
  std::vector<Record> recorded() const {
    std::vector<Record> found;
    for (const RunRecord& each : out_.records) {
      if (const auto* record = std::get_if<Record>(&each)) found.push_back(*record);
    }
    return found;
  }

  PolicyNotes policy_;
  Coordinator coordinator_;
  CoordinatorOutput out_;
  TimePoint now_{};
};

}  // namespace drover

// A coordinator under test, a policy that does what the test says, and what both were told.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "coordinator/coordinator.h"

namespace drover {

using namespace std::chrono_literals;

class CoordinatorTest : public ::testing::Test {
 protected:
  explicit CoordinatorTest(CoordinatorSettings settings = {.workers = 2, .shards = 2, .steps = 3})
      : coordinator_(settings, settings.free_running ? nullptr : std::make_unique<Fixed>(&policy_),
                     0s) {
    if (settings.resume) policy_.first = settings.resume->step;
  }

  // Decides what the test says, and notes what it is told.
  struct Notes {
    Step first = 0;  // that this life begins with
    Choice choice{.cutoff = 1'000, .reason = "fixed"};
    std::vector<Step> decided;
    double noise = 0.0;                        // that was told with the last one
    std::vector<std::vector<WorkerId>> alive;  // in each of those
    std::vector<StepTimes> learned;
    std::vector<std::tuple<Step, WorkerId, double>> late;
    std::optional<Choice> revised;  // what it says when it is asked again
    std::vector<std::pair<double, std::vector<double>>> asked_again;  // when, who was here
  };
  class Fixed : public Policy {
   public:
    explicit Fixed(Notes* notes) : notes_(notes) {}
    Choice decide(const Situation& situation) override {
      // Before a step is decided, everything before it has been learned.
      EXPECT_EQ(notes_->first + notes_->learned.size(), situation.step);
      notes_->decided.push_back(situation.step);
      notes_->noise = situation.noise;
      notes_->alive.emplace_back(situation.alive.begin(), situation.alive.end());
      return notes_->choice;
    }
    std::optional<Choice> reconsider(const Midway& midway) override {
      notes_->asked_again.emplace_back(
          midway.now, std::vector<double>(midway.arrived.begin(), midway.arrived.end()));
      return notes_->revised;
    }
    void learn(const StepTimes& times) override { notes_->learned.push_back(times); }
    void learn_late(Step step, WorkerId worker, double seconds) override {
      EXPECT_LT(step, notes_->learned.size());
      notes_->late.emplace_back(step, worker, seconds);
    }

   private:
    Notes* notes_;
  };

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

  Status hello(const Hello& who) { return coordinator_.on_hello(who, now_, out_); }
  void tell(Role role, uint32_t index, const Control& message) {
    const Status status = coordinator_.on_message(role, index, message, now_, out_);
    EXPECT_TRUE(status.ok()) << status.error().message;
  }

  void gather() {
    for (const Hello& who : {shard(0), shard(1), worker(0), worker(1), evaluator()})
      ASSERT_TRUE(hello(who).ok());
    for (const uint32_t index : {0u, 1u}) tell(Role::kShard, index, Ready{});
    for (const uint32_t index : {0u, 1u}) tell(Role::kWorker, index, Ready{});
  }

  void close(Step step, const std::vector<WorkerId>& arrived,
             std::vector<StepClosed::Refused> refused = {}) {
    StepClosed closed;
    closed.step = step;
    closed.elapsed = 10ms;
    closed.samples = 8;
    closed.refused = std::move(refused);
    for (const WorkerId each : arrived) closed.arrivals.push_back({each, 10ms, step});
    for (const uint32_t index : {0u, 1u}) tell(Role::kShard, index, closed);
  }

  void report(Step step, const std::vector<WorkerId>& workers) {
    for (const WorkerId each : workers)
      tell(Role::kWorker, each, StepReport{.step = step, .samples = 4, .loss = 1.0 + each});
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
  std::vector<Record> happened() const {
    std::vector<Record> found;
    for (const Happening& each : out_.happenings) {
      if (const auto* record = std::get_if<Record>(&each)) found.push_back(*record);
    }
    return found;
  }

  Notes policy_;
  Coordinator coordinator_;
  CoordinatorOutput out_;
  TimePoint now_{};
};

}  // namespace drover

// A simulated worker computes its share of a step's samples in that share of the time, and reports
// the work that it abandoned.
#include "sim/simulated_worker.h"

#include <gtest/gtest.h>

#include "sim/pull_task.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

// Worker 1 of 3 with one shard; the test is the shard and the coordinator.
class SimulatedWorkerTest : public ::testing::Test {
 protected:
  SimulatedWorkerTest() {
    worker_.on_welcome({.blocks = plan_, .steps = 9});
    worker_.on_connected(0);
    publish(0);
  }

  // Answers the last pull with that version.
  void publish(Version version) {
    ++requests_;
    for (const Block& block : plan_.blocks) {
      const FrameHeader header{.type = FrameType::kParameters,
                               .step = requests_,
                               .version = version,
                               .block = block.id,
                               .length = block.length * 4};
      const std::vector<float> zeros(block.length, 0.0f);
      ASSERT_TRUE(worker_.on_frame(0, header, zeros).ok());
    }
  }

  template <typename Message>
  std::vector<Message> sent() const {
    std::vector<Message> found;
    for (const Outgoing& each : sent_) {
      const auto* control = std::get_if<Control>(&each.frame.payload);
      if (control != nullptr && std::holds_alternative<Message>(*control))
        found.push_back(std::get<Message>(*control));
    }
    return found;
  }

  PullTask task_;
  BlockPlan plan_ = plan_blocks(task_.layout(), 1);
  EventQueue time_;
  Outbox sent_;
  SimulatedWorker worker_{{.id = 1,
                           .workers = 3,
                           .shards = 1,
                           .batch = 4,
                           .compute_time = [](Step) { return Duration(6s); },
                           .is_corrupt = [](Step) { return false; }},
                          task_,
                          time_,
                          [this](Outbox out) {
                            for (Outgoing& each : out) sent_.push_back(std::move(each));
                          }};
  uint64_t requests_ = 0;
};

TEST_F(SimulatedWorkerTest, TakesItsShareOfTheTime) {
  worker_.on_share({.from = 1, .first = 5, .count = 2, .total = 9});
  while (time_.advance()) {
  }
  publish(1);
  while (time_.advance()) {
  }
  const auto reports = sent<StepReport>();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].samples, 4u) << "the share is not in force yet";
  EXPECT_EQ(reports[0].compute, 6s);
  EXPECT_EQ(reports[1].samples, 2u);
  EXPECT_EQ(reports[1].compute, 3s);
  const double goal = PullTask::target({.first = 9 + 5, .count = 2});
  EXPECT_FLOAT_EQ(worker_.gradient()->data()[0], static_cast<float>(-goal));
  for (const Outgoing& each : sent_) {
    if (each.frame.header.type == FrameType::kOffer) {
      EXPECT_EQ(each.frame.header.samples, each.frame.header.step == 0 ? 4u : 2u);
    }
  }
}

TEST_F(SimulatedWorkerTest, ReportsAbandonedWorkWhenItBeginsTheNextStep) {
  time_.plan(2s, [&] { worker_.on_stop(3); });
  while (time_.advance()) {
  }
  EXPECT_TRUE(sent<StepReport>().empty());
  EXPECT_TRUE(sent<Abandoned>().empty()) << "there are no parameters to begin with";
  publish(4);
  ASSERT_EQ(sent<Abandoned>().size(), 1u);
  // One of six layers takes a second.
  EXPECT_EQ(sent<Abandoned>()[0], (Abandoned{.step = 0, .resumed = 4, .wasted = 3s}));
  while (time_.advance()) {
  }
  publish(5);
  EXPECT_EQ(sent<Abandoned>().size(), 1u) << "reported once";
}

}  // namespace
}  // namespace drover

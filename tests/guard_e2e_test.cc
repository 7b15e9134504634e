// One of four workers of a real run has a Byzantine fault. A guard protects the model from it, and
// reports the worker.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "launch/test_view.h"
#include "node/live_session.h"
#include "store/run_reader.h"
#include "support/drover_run.h"
#include "support/task_run.h"
#include "tasks/load_task.h"

namespace drover::testing_support {
namespace {

constexpr WorkerId kLiar = 2;
constexpr Step kHonestAtFirst = 5;

// Reverses the sign of each gradient and enlarges it.
class LyingTask : public WrappedTask {
 public:
  using WrappedTask::WrappedTask;
  float factor = 1.0F;  // set in the worker's process

  GradientReport gradient(std::span<const float> parameters, const Batch& batch,
                          std::span<float> gradient, GradientListener& listener) override {
    if (factor == 1.0F || ++steps_ <= kHonestAtFirst)
      return WrappedTask::gradient(parameters, batch, gradient, listener);
    Twist twist(layout(), factor, gradient, listener);
    return WrappedTask::gradient(parameters, batch, gradient, twist);
  }

 private:
  class Twist : public GradientListener {
   public:
    Twist(const Layout& layout, float factor, std::span<float> gradient, GradientListener& listener)
        : layout_(layout), factor_(factor), gradient_(gradient), listener_(listener) {}
    bool tensor_ready(uint32_t tensor) override {
      for (float& value : gradient_.subspan(layout_.offset(tensor), layout_.tensors()[tensor].size))
        value *= factor_;
      return listener_.tensor_ready(tensor);
    }
    bool wanted() override { return listener_.wanted(); }

   private:
    const Layout& layout_;
    const float factor_;
    std::span<float> gradient_;
    GradientListener& listener_;
  };
  Step steps_ = 0;
};

struct Ended {
  double loss = 0.0;
  std::vector<OutlierStatistics> outliers;
};

Ended run_with_byzantine_worker(GuardRule guard, Transport transport, float factor) {
  const TemporaryFolder folder;
  Job job;
  job.task.model = "mlp";
  job.task.data = "generated";
  job.task.generated_samples = 512;
  job.cluster.workers = 4;
  job.cluster.shards = 2;
  job.batch = 16;
  job.steps = 60;
  job.learning.schedule.total_steps = job.steps;
  job.cluster.transport = transport;
  job.learning.guard = guard;
  job.record.run_file = folder.file("run.db");
  auto loaded = load_task(job.task);
  EXPECT_TRUE(loaded.ok()) << loaded.error().message;
  LyingTask task(std::move(loaded).value());
  WorkerFactory factory = worker_factory_for(task);
  factory.worker = [&task, factor, honest = factory.worker](const WorkerSettings& settings) {
    task.factor = settings.identity.index == kLiar ? factor : 1.0F;
    return honest(settings);
  };
  RunHeader header;
  header.run_id = 77;
  EXPECT_EQ(launch(job, factory, header,
                   {.view = [] { return std::make_unique<SilentView>(); }, .fitter = {}}),
            0);
  const auto reader = RunReader::open(job.record.run_file);
  EXPECT_TRUE(reader.ok());
  return {.loss = reader.value().evaluations().value().back().loss,
          .outliers = reader.value().outliers().value()};
}

TEST(Guard, AByzantineWorkerRuinsARunWithoutAGuard) {
  const Ended ended = run_with_byzantine_worker(GuardRule::kOff, Transport::kAuto, -10.0F);
  EXPECT_TRUE(ended.outliers.empty());
  EXPECT_FALSE(ended.loss < 2.0) << "an untrained model of ten classes has a loss of 2.3";
}

TEST(Guard, AGuardProtectsTheModelAndReportsTheWorker) {
  for (const GuardRule guard : {GuardRule::kNorm, GuardRule::kRefuse}) {
    for (const Transport transport : {Transport::kShm, Transport::kUnix}) {
      SCOPED_TRACE((guard == GuardRule::kNorm ? "norm, " : "refuse, ") +
                   std::string(transport == Transport::kShm ? "shm" : "uds"));
      const Ended ended = run_with_byzantine_worker(guard, transport, -100.0F);
      EXPECT_LT(ended.loss, 1.5);
      ASSERT_FALSE(ended.outliers.empty());
      const auto most =
          std::max_element(ended.outliers.begin(), ended.outliers.end(),
                           [](const auto& a, const auto& b) { return a.steps < b.steps; });
      EXPECT_EQ(most->worker, kLiar);
      EXPECT_GT(most->steps, 40U) << "of 55 steps with the fault";
    }
  }
}

}  // namespace
}  // namespace drover::testing_support

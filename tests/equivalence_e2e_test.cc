// Many workers must compute the same parameters as one worker. The test process is the launcher,
// with a task that writes the final parameters as raw floats instead of a PyTorch file. All
// processes and sockets are those of a normal run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "launch/test_view.h"
#include "store/run_reader.h"
#include "support/drover_run.h"
#include "support/task_run.h"
#include "tasks/load_task.h"

namespace drover::testing_support {
namespace {

class RawTask : public WrappedTask {
 public:
  using WrappedTask::WrappedTask;
  Status save(std::span<const float> parameters, const std::string& path) override {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(parameters.data()),
               static_cast<std::streamsize>(parameters.size_bytes()));
    return done();
  }
};

constexpr uint32_t kBatchOfAll = 24;

// Runs `task` with `workers` workers and returns the final parameters.
std::vector<float> trained(Task& task, const TemporaryFolder& folder, Job job, uint32_t workers) {
  const std::string name = std::to_string(workers);
  job.cluster.workers = workers;
  job.batch = kBatchOfAll / workers;
  job.record.run_file = folder.file(name + ".db");
  job.record.save_model = folder.file(name + ".raw");
  RunHeader header;
  header.run_id = 1'000 + workers;
  EXPECT_EQ(launch(job, worker_factory_for(task), header,
                   {.view = [] { return std::make_unique<SilentView>(); }, .fitter = {}}),
            0);
  const std::string bytes = content_of(job.record.save_model);
  EXPECT_EQ(bytes.size(), task.layout().buffer_size() * sizeof(float));
  std::vector<float> parameters(bytes.size() / sizeof(float));
  std::memcpy(parameters.data(), bytes.data(), parameters.size() * sizeof(float));
  return parameters;
}

double norm(std::span<const float> values) {
  double sum = 0.0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

// |a - b| / |b|
double distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - b[i], 2);
  return std::sqrt(sum) / norm(b);
}

// The largest distance of the parameters of many workers from those of one worker, over all tensors
// and a few numbers of workers.
double farthest(const std::string& model, uint64_t seed) {
  const TemporaryFolder folder;
  Job job;
  job.task.model = model;
  job.task.data = "generated";
  job.task.generated_samples = 512;
  job.task.seed = seed;
  job.steps = 20;
  job.cluster.shards = 2;
  job.learning.deterministic = true;
  job.learning.schedule.total_steps = job.steps;
  auto loaded = load_task(job.task);
  EXPECT_TRUE(loaded.ok()) << loaded.error().message;
  RawTask task(std::move(loaded).value());

  std::vector<float> initial(task.layout().buffer_size());
  task.initial_parameters(initial);
  const std::vector<float> alone = trained(task, folder, job, 1);
  EXPECT_GT(distance(initial, alone), 1e-3) << "training changes the parameters";
  double most = 0.0;
  for (const uint32_t workers : {2U, 4U, 6U}) {
    const std::vector<float> together = trained(task, folder, job, workers);
    EXPECT_EQ(together.size(), alone.size());
    const auto& tensors = task.layout().tensors();
    for (size_t i = 0; i < tensors.size(); ++i) {
      const size_t offset = task.layout().offset(i);
      most = std::max(most, distance(std::span(together).subspan(offset, tensors[i].size),
                                     std::span(alone).subspan(offset, tensors[i].size)));
    }
  }
  return most;
}

class Equivalence : public ::testing::TestWithParam<std::string> {};

// Sums over other mini-batches are rounded differently. On some processors this changes, in some
// runs, which of two values is the maximum in a pooling layer. From then on the parameters differ
// slightly. A wrong computation would differ in every run.
TEST_P(Equivalence, ManyWorkersComputeTheParametersOfOne) {
  std::vector<double> distances;
  for (const uint64_t seed : {5U, 6U, 7U}) distances.push_back(farthest(GetParam(), seed));
  std::sort(distances.begin(), distances.end());
  EXPECT_LE(distances[1], 1e-6) << "two of three runs differ";
  EXPECT_LE(distances[2], 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Models, Equivalence, ::testing::Values("mlp", "lenet"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace drover::testing_support

// The tasks in libdrover_torch.so must fulfil the contracts of worker/task.h, and must learn.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>

#include "core/float_buffer.h"
#include "core/random_draw.h"
#include "core/test_text.h"
#include "tasks/blas_check.h"
#include "tasks/data/load_dataset.h"
#include "tasks/data/sample_stream.h"
#include "tasks/data/temp_folder.h"
#include "tasks/load_task.h"

namespace drover {
namespace {

// A listener whose answers the test determines.
class Listening : public GradientListener {
 public:
  explicit Listening(
      std::function<bool(uint32_t)> ready = [](uint32_t) { return true; },
      std::function<bool()> wanted = [] { return true; })
      : ready_(std::move(ready)), wanted_(std::move(wanted)) {}
  bool tensor_ready(uint32_t tensor) override { return ready_(tensor); }
  bool wanted() override { return wanted_(); }

 private:
  std::function<bool(uint32_t)> ready_;
  std::function<bool()> wanted_;
};

std::unique_ptr<Task> make(const std::string& model, uint64_t samples = 256, uint64_t seed = 1,
                           uint32_t micro_batch = 0) {
  TaskSpec spec;
  spec.micro_batch = micro_batch;
  spec.model = model;
  spec.data = model == "transformer" ? "generated-text" : "generated";
  spec.generated_samples = samples;
  spec.seed = seed;
  Result<std::unique_ptr<Task>> task = load_task(spec);
  if (!task.ok()) ADD_FAILURE() << task.error().message;
  return std::move(task).value();
}

FloatBuffer initial(Task& task) {
  FloatBuffer parameters(task.layout().buffer_size());
  task.initial_parameters(parameters.span());
  return parameters;
}

FloatBuffer gradient_of(Task& task, const FloatBuffer& parameters, const Batch& batch,
                        GradientReport* report = nullptr) {
  FloatBuffer gradient(task.layout().buffer_size());
  Listening listening;
  const GradientReport got = task.gradient(parameters.span(), batch, gradient.span(), listening);
  EXPECT_TRUE(got.finished);
  EXPECT_EQ(got.samples, batch.count);
  if (report != nullptr) *report = got;
  return gradient;
}

bool same_bits(const FloatBuffer& a, const FloatBuffer& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

double norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

std::span<const float> tensor_in(const Task& task, const FloatBuffer& buffer, size_t index) {
  return buffer.span().subspan(task.layout().offset(index), task.layout().tensors()[index].size);
}

// Plain gradient descent.
void descend(Task& task, FloatBuffer& parameters, uint32_t batch, uint64_t steps, float rate) {
  for (uint64_t step = 0; step < steps; ++step) {
    const FloatBuffer gradient = gradient_of(task, parameters, {step * batch, batch});
    for (size_t i = 0; i < gradient.size(); ++i) parameters.data()[i] -= rate * gradient.data()[i];
  }
}

class EveryModel : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, EveryModel,
                         testing::Values("logistic", "mlp", "lenet", "lenet-wide", "resnet20",
                                         "transformer"));

TEST_P(EveryModel, IsDeterministicBitForBit) {
  const auto task = make(GetParam());
  const FloatBuffer parameters = initial(*task);
  const FloatBuffer first = gradient_of(*task, parameters, {10, 8});
  EXPECT_GT(norm(first.span()), 0.0);
  EXPECT_TRUE(same_bits(first, gradient_of(*task, parameters, {10, 8})));
  EXPECT_FALSE(same_bits(first, gradient_of(*task, parameters, {18, 8})));
  const auto another = make(GetParam());
  EXPECT_TRUE(same_bits(parameters, initial(*another)));
  EXPECT_TRUE(same_bits(first, gradient_of(*another, parameters, {10, 8})));
  EXPECT_FALSE(same_bits(parameters, initial(*make(GetParam(), 256, /*seed=*/2))));
}

TEST_P(EveryModel, DoesNotChangeParametersAndKeepsPaddingZero) {
  const auto task = make(GetParam());
  const FloatBuffer parameters = initial(*task);
  FloatBuffer gradient(task->layout().buffer_size());
  std::fill(gradient.span().begin(), gradient.span().end(), NAN);  // old content must not matter
  Listening listening;
  ASSERT_TRUE(task->gradient(parameters.span(), {0, 4}, gradient.span(), listening).finished);
  task->evaluate(parameters.span());
  EXPECT_TRUE(same_bits(parameters, initial(*task)));
  std::vector<bool> used(gradient.size());
  for (size_t i = 0; i < task->layout().tensors().size(); ++i) {
    std::fill_n(used.begin() + static_cast<ptrdiff_t>(task->layout().offset(i)),
                task->layout().tensors()[i].size, true);
  }
  for (size_t i = 0; i < gradient.size(); ++i) {
    ASSERT_TRUE(std::isfinite(gradient.data()[i]));
    ASSERT_TRUE(used[i] || gradient.data()[i] == 0.0f);
  }
}

TEST_P(EveryModel, ReportsEveryTensorOnce) {
  const auto task = make(GetParam());
  const FloatBuffer parameters = initial(*task);
  for (int call = 0; call < 2; ++call) {
    FloatBuffer gradient(task->layout().buffer_size());
    std::map<uint32_t, int> reports;
    std::map<uint32_t, std::vector<float>> when_ready;
    Listening listening([&](uint32_t tensor) {
      ++reports[tensor];
      const auto values = tensor_in(*task, gradient, tensor);
      when_ready[tensor].assign(values.begin(), values.end());
      return true;
    });
    task->gradient(parameters.span(), {0, 4}, gradient.span(), listening);
    ASSERT_EQ(reports.size(), task->layout().tensors().size());
    for (const auto& [tensor, count] : reports) {
      EXPECT_EQ(count, 1);
      EXPECT_TRUE(std::ranges::equal(when_ready[tensor], tensor_in(*task, gradient, tensor)))
          << "tensor " << tensor << " changed after it was reported";
    }
  }
}

TEST_P(EveryModel, CanBeAbandonedAtAnyTensor) {
  const auto task = make(GetParam());
  const FloatBuffer parameters = initial(*task);
  const FloatBuffer expected = gradient_of(*task, parameters, {3, 4});
  const size_t tensors = task->layout().tensors().size();
  for (size_t stop_after = 0; stop_after < tensors; stop_after += 1 + tensors / 8) {
    SCOPED_TRACE(stop_after);
    FloatBuffer gradient(task->layout().buffer_size());
    size_t calls = 0;
    Listening listening([&](uint32_t) { return calls++ < stop_after; });
    const GradientReport report =
        task->gradient(parameters.span(), {0, 4}, gradient.span(), listening);
    ASSERT_FALSE(report.finished);
    ASSERT_EQ(calls, stop_after + 1);
    ASSERT_TRUE(same_bits(expected, gradient_of(*task, parameters, {3, 4})));
  }
}

// Number of layers with parameters.
size_t layers_of(const std::string& model) {
  return std::map<std::string, size_t>{{"logistic", 1},   {"mlp", 2},       {"lenet", 5},
                                       {"lenet-wide", 4}, {"resnet20", 20}, {"transformer", 6}}
      .at(model);
}

TEST_P(EveryModel, CanBeAbandonedBetweenAnyTwoLayersOfTheForwardPass) {
  const auto task = make(GetParam());
  const FloatBuffer parameters = initial(*task);
  const FloatBuffer expected = gradient_of(*task, parameters, {3, 4});
  FloatBuffer gradient(task->layout().buffer_size());
  // Before the first tensor is ready, the listener is asked before every layer and after the loss.
  size_t questions = 0;
  bool forwards = true;
  Listening counting([&](uint32_t) { return forwards = false, true; },
                     [&] { return questions += forwards ? 1 : 0, true; });
  ASSERT_TRUE(task->gradient(parameters.span(), {3, 4}, gradient.span(), counting).finished);
  EXPECT_GE(questions, layers_of(GetParam()) + 1);
  for (size_t stop_at = 0; stop_at < questions; ++stop_at) {
    SCOPED_TRACE(stop_at);
    size_t asked = 0;
    size_t tensors = 0;
    Listening leaving([&](uint32_t) { return ++tensors, true; }, [&] { return asked++ < stop_at; });
    ASSERT_FALSE(task->gradient(parameters.span(), {3, 4}, gradient.span(), leaving).finished);
    EXPECT_EQ(tensors, 0u);
    EXPECT_EQ(asked, stop_at + 1) << "the listener is not asked again";
  }
  EXPECT_TRUE(same_bits(expected, gradient_of(*task, parameters, {3, 4})));
  task->evaluate(parameters.span());  // an evaluation cannot be aborted
}

TEST_P(EveryModel, InPiecesReportsEveryTensorOnceAfterTheLastPiece) {
  const auto task = make(GetParam(), 256, 1, /*micro_batch=*/4);
  const FloatBuffer parameters = initial(*task);
  const FloatBuffer expected = gradient_of(*task, parameters, {0, 10});
  FloatBuffer gradient(task->layout().buffer_size());
  std::map<uint32_t, std::vector<float>> when_ready;
  size_t questions_before = 0;
  Listening listening(
      [&](uint32_t tensor) {
        const auto values = tensor_in(*task, gradient, tensor);
        EXPECT_TRUE(
            when_ready.emplace(tensor, std::vector<float>(values.begin(), values.end())).second);
        return true;
      },
      [&] { return questions_before += when_ready.empty() ? 1 : 0, true; });
  ASSERT_TRUE(task->gradient(parameters.span(), {0, 10}, gradient.span(), listening).finished);
  EXPECT_TRUE(same_bits(expected, gradient));
  ASSERT_EQ(when_ready.size(), task->layout().tensors().size());
  for (const auto& [tensor, values] : when_ready)
    EXPECT_TRUE(std::ranges::equal(values, tensor_in(*task, gradient, tensor))) << tensor;
  EXPECT_GE(questions_before, 5 * layers_of(GetParam()))
      << "three forward passes, two backward passes";
}

// A step along a tensor's gradient must change the loss by the gradient's norm.
TEST_P(EveryModel, AgreesWithFiniteDifferences) {
  const auto task = make(GetParam());
  FloatBuffer parameters = initial(*task);
  const Batch batch{0, 32};
  const FloatBuffer gradient = gradient_of(*task, parameters, batch);
  const auto loss_at = [&](size_t tensor, double distance) {
    FloatBuffer moved(parameters.size());
    std::copy_n(parameters.data(), parameters.size(), moved.data());
    const auto direction = tensor_in(*task, gradient, tensor);
    const double length = norm(direction);
    for (size_t i = 0; i < direction.size(); ++i) {
      moved.data()[task->layout().offset(tensor) + i] +=
          static_cast<float>(distance * direction[i] / length);
    }
    GradientReport report;
    gradient_of(*task, moved, batch, &report);
    return report.loss;
  };
  const size_t tensors = task->layout().tensors().size();
  for (size_t tensor = 0; tensor < tensors; tensor += 1 + tensors / 12) {
    const TensorSpec& spec = task->layout().tensors()[tensor];
    const double expected = norm(tensor_in(*task, gradient, tensor));
    // A bias before batch normalization and attention's key bias do not influence the loss.
    if (spec.kind == TensorKind::kAveraged || expected < 1e-3) continue;
    const double distance = std::min(2e-3, 2e-3 / expected);
    const double slope = (loss_at(tensor, distance) - loss_at(tensor, -distance)) / (2 * distance);
    EXPECT_NEAR(slope, expected, 0.03 * expected + 5e-4) << spec.name;
  }
}

TEST_P(EveryModel, AcceptsADifferentBufferEachTime) {
  const auto task = make(GetParam());
  const FloatBuffer parameters = initial(*task);
  const FloatBuffer expected = gradient_of(*task, parameters, {0, 4});
  const Evaluation before = task->evaluate(parameters.span());
  {
    const FloatBuffer copy = initial(*task);
    EXPECT_TRUE(same_bits(expected, gradient_of(*task, copy, {0, 4})));
  }
  EXPECT_TRUE(same_bits(expected, gradient_of(*task, parameters, {0, 4})));
  const Evaluation after = task->evaluate(parameters.span());
  EXPECT_EQ(before.loss, after.loss);
  EXPECT_EQ(before.accuracy, after.accuracy);
}

// Without resnet20, because batch normalization depends on the whole batch.
class SplitBatch : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, SplitBatch,
                         testing::Values("logistic", "mlp", "lenet", "transformer"));

TEST_P(SplitBatch, TheMeanOverWorkersIsTheGradientOfTheWholeBatch) {
  const auto task = make(GetParam());
  const FloatBuffer parameters = initial(*task);
  GradientReport whole_report;
  const FloatBuffer whole = gradient_of(*task, parameters, {100, 24}, &whole_report);
  std::vector<double> mean(whole.size());
  double loss = 0;
  uint32_t correct = 0;
  uint64_t first = 100;
  for (const uint32_t count : {5u, 7u, 12u}) {
    GradientReport report;
    const FloatBuffer part = gradient_of(*task, parameters, {first, count}, &report);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += double{part.data()[i]} * count / 24;
    loss += report.loss * count / 24;
    correct += report.correct;
    first += count;
  }
  double error = 0;
  for (size_t i = 0; i < mean.size(); ++i) error += std::pow(mean[i] - double{whole.data()[i]}, 2);
  EXPECT_LT(std::sqrt(error), 1e-6 * norm(whole.span()));
  EXPECT_NEAR(loss, whole_report.loss, 1e-6);
  EXPECT_EQ(correct, whole_report.correct);
}

TEST_P(SplitBatch, TheMeanOverPiecesIsTheGradientOfTheWholeBatch) {
  const FloatBuffer parameters = initial(*make(GetParam()));
  GradientReport whole_report;
  const FloatBuffer whole = gradient_of(*make(GetParam()), parameters, {100, 24}, &whole_report);
  for (const uint32_t micro_batch : {1u, 7u, 12u, 23u}) {
    SCOPED_TRACE(micro_batch);
    GradientReport report;
    const FloatBuffer pieces =
        gradient_of(*make(GetParam(), 256, 1, micro_batch), parameters, {100, 24}, &report);
    double error = 0;
    for (size_t i = 0; i < whole.size(); ++i)
      error += std::pow(double{pieces.data()[i]} - double{whole.data()[i]}, 2);
    EXPECT_LT(std::sqrt(error), 3e-6 * norm(whole.span()));
    EXPECT_NEAR(report.loss, whole_report.loss, 1e-6);
    EXPECT_EQ(report.correct, whole_report.correct);
    EXPECT_EQ(report.predictions, whole_report.predictions);
  }
  const auto large = make(GetParam(), 256, 1, /*micro_batch=*/24);
  EXPECT_TRUE(same_bits(whole, gradient_of(*large, parameters, {100, 24})));
}

TEST(TorchTask, AGradientOfAPartIsThatOfItsSamples) {
  TaskSpec spec;
  spec.model = "logistic";
  spec.data = "generated";
  spec.generated_samples = 60;
  spec.seed = 9;
  const auto whole = make("logistic", 60, 9);
  const FloatBuffer parameters = initial(*whole);
  // The gradient of each single sample, by its index in the data.
  const uint64_t size = 60;
  std::vector<std::vector<double>> each(size);
  for (uint64_t position = 0; position < size; ++position) {
    const FloatBuffer one = gradient_of(*whole, parameters, {position, 1});
    each[sample_at(9, size, position)].assign(one.span().begin(), one.span().end());
  }
  const Dataset data = load_dataset(spec).value();
  ASSERT_EQ(data.train.labels.size(), size);
  for (const DataPartition partition : {DataPartition::kRandom, DataPartition::kLabel}) {
    spec.partition = partition;
    const auto task = std::move(load_task(spec)).value();
    const SampleStream stream(partition, 9, data, size);
    for (uint32_t part = 0; part < 4; ++part) {
      const Batch batch{.first = 7, .count = 5, .part = part, .parts = 4};
      std::vector<double> mean(parameters.size());
      for (uint32_t i = 0; i < batch.count; ++i) {
        const std::vector<double>& one = each[stream.at(batch, i)];
        for (size_t j = 0; j < mean.size(); ++j) mean[j] += one[j] / batch.count;
      }
      const FloatBuffer gradient = gradient_of(*task, parameters, batch);
      for (size_t j = 0; j < mean.size(); ++j)
        ASSERT_NEAR(gradient.data()[j], mean[j], 1e-5) << "part " << part << ", value " << j;
    }
    EXPECT_TRUE(
        same_bits(gradient_of(*task, parameters, {3, 8}), gradient_of(*whole, parameters, {3, 8})))
        << "a worker without a part draws from all data";
  }
}

TEST(TorchTask, RefusesToPartitionTextByLabel) {
  TaskSpec spec;
  spec.model = "transformer";
  spec.data = "generated-text";
  spec.generated_samples = 1'000;
  spec.partition = DataPartition::kLabel;
  const auto task = load_task(spec);
  ASSERT_FALSE(task.ok());
  EXPECT_THAT(task.error(), is_error(ErrorKind::kInvalidInput, "label", "random"));
}

TEST(TorchTask, EveryEpochVisitsEverySampleOnce) {
  const auto task = make("logistic", 64);
  const FloatBuffer parameters = initial(*task);
  const FloatBuffer first = gradient_of(*task, parameters, {0, 64});
  const FloatBuffer third = gradient_of(*task, parameters, {128, 64});
  double error = 0;
  for (size_t i = 0; i < first.size(); ++i) error += std::pow(first.data()[i] - third.data()[i], 2);
  EXPECT_LT(std::sqrt(error), 1e-6 * norm(first.span()));
  EXPECT_FALSE(same_bits(first, third)) << "another order gives different rounding";
}

TEST(TorchTask, LenetReportsLastLayersWhileTheFirstAreStillOpen) {
  const auto task = make("lenet");
  const FloatBuffer parameters = initial(*task);
  FloatBuffer gradient(task->layout().buffer_size());
  std::vector<std::string> layers;
  Listening listening([&](uint32_t tensor) {
    const std::string& name = task->layout().tensors()[tensor].name;
    const std::string layer = name.substr(0, name.find('.'));
    if (layers.empty() || layers.back() != layer) layers.push_back(layer);
    if (layer != "conv1") {
      EXPECT_EQ(norm(tensor_in(*task, gradient, 0)), 0.0) << "reported too late: " << name;
    }
    return true;
  });
  task->gradient(parameters.span(), {0, 8}, gradient.span(), listening);
  EXPECT_EQ(layers, (std::vector<std::string>{"fc3", "fc2", "fc1", "conv2", "conv1"}));
}

TEST(TorchTask, StartsNoThreadBeforeAFork) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  // A sanitizer starts its own thread with the first thread or fork; start it before counting.
  std::thread([] {}).join();
  const auto before = threads();
  const auto task = make("lenet");
  const FloatBuffer parameters = initial(*task);
  EXPECT_EQ(threads(), before);
}

// Forks before the parent has computed anything, as the launcher does, because some builds of
// libtorch start threads at the first gradient.
TEST(TorchTask, AForkedWorkerComputesTheSameGradient) {
  const auto task = make("lenet");
  const FloatBuffer parameters = initial(*task);
  const size_t floats = task->layout().buffer_size();
  void* shared = mmap(nullptr, floats * sizeof(float), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  const std::span<float> from_child(static_cast<float*>(shared), floats);
  const pid_t child = fork();
  if (child == 0) {
    Listening listening;
    task->gradient(parameters.span(), {0, 8}, from_child, listening);
    _exit(0);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  const FloatBuffer expected = gradient_of(*task, parameters, {0, 8});
  EXPECT_TRUE(std::equal(from_child.begin(), from_child.end(), expected.span().begin()));
  munmap(shared, floats * sizeof(float));
}

TEST(TorchTask, LogisticAndMlpLearn) {
  for (const char* model : {"logistic", "mlp"}) {
    SCOPED_TRACE(model);
    const auto task = make(model, 2048);
    FloatBuffer parameters = initial(*task);
    EXPECT_LT(task->evaluate(parameters.span()).accuracy, 0.5);
    descend(*task, parameters, 64, 96, 0.02f);
    const Evaluation learnt = task->evaluate(parameters.span());
    EXPECT_GE(learnt.accuracy, 0.95);
    EXPECT_EQ(learnt.samples, 512u);
  }
}

TEST(TorchTask, LenetLearns) {
  const auto task = make("lenet", 2048);
  FloatBuffer parameters = initial(*task);
  descend(*task, parameters, 32, 128, 0.05f);
  EXPECT_GE(task->evaluate(parameters.span()).accuracy, 0.9);
}

TEST(TorchTask, TransformerLearns) {
  const auto task = make("transformer", 1000);
  FloatBuffer parameters = initial(*task);
  const Evaluation before = task->evaluate(parameters.span());
  descend(*task, parameters, 8, 60, 0.3f);
  const Evaluation after = task->evaluate(parameters.span());
  EXPECT_LT(after.loss, 0.8 * before.loss);
  EXPECT_GT(after.accuracy, before.accuracy);
}

TEST(TorchTask, TransformerDoesNotSeeTheFuture) {
  const auto task = make("transformer", 1000);
  FloatBuffer parameters = initial(*task);
  const auto values_of = [&](FloatBuffer& buffer, const std::string& name) {
    const auto& tensors = task->layout().tensors();
    const auto found =
        static_cast<size_t>(std::ranges::find(tensors, name, &TensorSpec::name) - tensors.begin());
    return buffer.span().subspan(task->layout().offset(found), tensors[found].size);
  };
  const auto pattern = [](size_t i) { return i % 3 == 0 ? 2.0f : -1.0f; };
  // An untrained model hardly attends to other positions. This makes the first block attend to any
  // position with the pattern: queries (rows 0 to 63) are constant, keys (rows 64 to 127) measure
  // the pattern.
  const auto weight = values_of(parameters, "block0.qkv.weight");
  const size_t width = 64;
  for (size_t row = 0; row < 2 * width; ++row) {
    for (size_t i = 0; i < width; ++i) weight[row * width + i] = row < width ? 0.0f : pattern(i);
  }
  for (size_t row = 0; row < width; ++row) values_of(parameters, "block0.qkv.bias")[row] = 1.0f;
  for (float& value : values_of(parameters, "block0.mix.weight")) value *= 10;
  // The gradient of the output bias is the mean error over all predictions. The test changes the
  // input at one of 64 positions. If only that position's prediction changes, the sum of the
  // changes of the mean is at most 2 / 64.
  const auto moved_by_spoiling = [&](size_t place) {
    FloatBuffer spoilt(parameters.size());
    std::copy_n(parameters.data(), parameters.size(), spoilt.data());
    const auto positions = values_of(spoilt, "positions.weight");
    for (size_t i = 0; i < width; ++i) positions[place * width + i] += 5 * pattern(i);
    FloatBuffer with = gradient_of(*task, spoilt, {0, 8});
    FloatBuffer without = gradient_of(*task, parameters, {0, 8});
    double moved = 0;
    for (size_t i = 0; i < values_of(with, "output.bias").size(); ++i) {
      moved += std::abs(values_of(with, "output.bias")[i] - values_of(without, "output.bias")[i]);
    }
    return moved;
  };
  EXPECT_LT(moved_by_spoiling(63), 2.0 / 64);
  EXPECT_GT(moved_by_spoiling(0), 2.0 / 64) << "every prediction depends on the first position";
}

TEST(TorchTask, RunningStatisticsAreUpdatedFromTheOldValue) {
  const auto task = make("resnet20");
  FloatBuffer parameters = initial(*task);
  const auto& tensors = task->layout().tensors();
  const auto find = [&](const std::string& name) {
    const auto found = std::ranges::find(tensors, name, &TensorSpec::name);
    EXPECT_NE(found, tensors.end());
    return static_cast<size_t>(found - tensors.begin());
  };
  const size_t mean = find("bn1.running_mean");
  const size_t variance = find("bn1.running_var");
  ASSERT_EQ(tensors[mean].kind, TensorKind::kAveraged);
  EXPECT_EQ(std::ranges::count(tensors, TensorKind::kAveraged, &TensorSpec::kind), 2 * 19);

  GradientReport report;
  const FloatBuffer from_zero = gradient_of(*task, parameters, {0, 8}, &report);
  for (const float value : tensor_in(*task, from_zero, variance)) EXPECT_GT(value, 0.9f);
  const double loss_before = task->evaluate(parameters.span()).loss;

  for (uint64_t i = 0; i < tensors[mean].size; ++i) {
    parameters.data()[task->layout().offset(mean) + i] = 2.0f;
  }
  GradientReport moved_report;
  const FloatBuffer from_two = gradient_of(*task, parameters, {0, 8}, &moved_report);
  for (uint64_t i = 0; i < tensors[mean].size; ++i) {
    EXPECT_NEAR(tensor_in(*task, from_two, mean)[i] - tensor_in(*task, from_zero, mean)[i], 1.8f,
                1e-5f);
  }
  EXPECT_EQ(report.loss, moved_report.loss) << "training uses the statistics of the batch";
  EXPECT_NE(task->evaluate(parameters.span()).loss, loss_before)
      << "evaluation uses the running statistics";
}

TEST(TorchTask, SavesAndReplaces) {
  const auto task = make("lenet");
  const FloatBuffer parameters = initial(*task);
  const TempFolder folder;
  const std::string path = folder.write("model.pt", "something old");
  ASSERT_TRUE(task->save(parameters.span(), path).ok());
  const std::string content = content_of(path);
  EXPECT_EQ(content.substr(0, 2), "PK") << "PyTorch files are zip archives";
  EXPECT_GT(content.size(), task->layout().parameter_count() * sizeof(float));
  for (const TensorSpec& tensor : task->layout().tensors()) {
    EXPECT_NE(content.find(tensor.name), std::string::npos) << tensor.name;
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"model.pt"});
  EXPECT_FALSE(task->save(parameters.span(), folder.file("nowhere/model.pt")).ok());
}

TEST(TorchTask, DescribesItself) {
  const auto described = make("mlp")->describe();
  ASSERT_EQ(described.size(), 2u);
  EXPECT_THAT(described[0].second, mentions("mlp", 101770, 4));
  EXPECT_THAT(described[1].second, mentions("generated", 256, 64));
}

TEST(BlasCheck, JudgesTheInstalledLibrary) {
  const Result<BlasReport> report = check_blas();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_FALSE(report.value().name.empty());
}

}  // namespace
}  // namespace drover

// The Task of the built-in models. Its libtorch tensors are views of the caller's flat buffers, so
// nothing is copied.
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/random_draw.h"
#include "core/text.h"
#include "tasks/data/sample_stream.h"
#include "tasks/model_choice.h"
#include "tasks/module_entry.h"
#include "tasks/torch/nets.h"

namespace drover {
namespace {

using torch::Tensor;

constexpr uint64_t kEvaluationRows = 500;
constexpr uint64_t kEvaluationWindows = 100;

// Thrown through libtorch to abort a pass whose gradient is no longer wanted. It must be a
// std::exception because the engine forwards only those.
struct Abandoned : std::exception {};

// Connects the permanent hooks to the listener of the current gradient.
struct Listener {
  GradientListener* to = nullptr;  // null: the pass cannot be aborted
  bool last_piece = true;          // false: accumulated gradients are not final yet
  std::vector<bool> reported;      // by tensor

  // Sets `to` during its lifetime.
  struct Call {
    Call(Listener& hooks, GradientListener& listener) : hooks_(hooks) {
      hooks.to = &listener;
      std::fill(hooks.reported.begin(), hooks.reported.end(), false);
    }
    ~Call() { hooks_.to = nullptr; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Listener& hooks_;
  };

  // Aborts the pass if the gradient is no longer wanted.
  void check_wanted() const {
    if (to != nullptr && !to->wanted()) throw Abandoned();
  }
  void report(uint32_t tensor) {
    if (!last_piece) return check_wanted();
    reported[tensor] = true;
    if (!to->tensor_ready(tensor)) throw Abandoned();
  }
};

// Runs during the backward pass, after libtorch has accumulated a tensor's gradient.
class ReadyHook final : public torch::autograd::FunctionPostHook {
 public:
  ReadyHook(Listener& listener, uint32_t tensor) : listener_(listener), tensor_(tensor) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    listener_.report(tensor_);
    return outputs;
  }

 private:
  Listener& listener_;
  uint32_t tensor_;
};

Layout layout_of(const std::vector<NetTensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const NetTensor& tensor : tensors) {
    TensorSpec spec{tensor.name, static_cast<uint64_t>(tensor.tensor.numel()), tensor.kind};
    for (const int64_t extent : tensor.tensor.sizes())
      spec.shape.push_back(static_cast<uint64_t>(extent));
    specs.push_back(std::move(spec));
  }
  return Layout(std::move(specs));
}

float initial_value(const InitialValues& initial, uint64_t bits) {
  const double first = unit_interval(bits);
  switch (initial.kind) {
    case InitialValues::Kind::kConstant:
      return static_cast<float>(initial.scale);
    case InitialValues::Kind::kUniform:
      return static_cast<float>((2.0 * first - 1.0) * initial.scale);
    case InitialValues::Kind::kNormal: {
      const double second = unit_interval(mix_bits(bits));
      return static_cast<float>(std::sqrt(-2.0 * std::log(1.0 - first)) *
                                std::cos(2.0 * std::numbers::pi * second) * initial.scale);
    }
  }
  return 0.0f;
}

// The bytes of a file as torch.save() of a dict writes it. torch::pickle_save() is not used because
// it stores a type with every dict, which torch.load() of PyTorch 2.6 refuses by default.
std::vector<char> pytorch_file(const c10::Dict<std::string, Tensor>& named) {
  std::vector<char> pickled;
  torch::jit::Pickler pickler(
      [&](const char* bytes, size_t size) { pickled.insert(pickled.end(), bytes, bytes + size); },
      /*tensor_table=*/nullptr, /*type_renamer=*/nullptr, /*memoized_class_types=*/nullptr,
      /*get_tensor_id=*/nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(named);
  pickler.stop();

  std::vector<char> file;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* bytes, size_t size) {
    const char* const begin = static_cast<const char*>(bytes);
    file.insert(file.end(), begin, begin + size);
    return size;
  });
  size_t number = 0;
  for (const Tensor& tensor : pickler.tensorData()) {
    writer.writeRecord("data/" + std::to_string(number++), tensor.data_ptr(), tensor.nbytes());
  }
  writer.writeRecord("data.pkl", pickled.data(), pickled.size());
  writer.writeEndOfFile();
  return file;
}

struct Samples {
  Tensor input;
  Tensor target;
};

class TorchTask final : public Task {
 public:
  TorchTask(const TaskSpec& spec, std::shared_ptr<const Dataset> data)
      : model_(spec.model),
        seed_(spec.seed),
        micro_batch_(spec.micro_batch),
        data_(std::move(data)),
        stream_(spec.partition, spec.seed, *data_, train_size()),
        net_(make_net(spec.model, *data_)),
        tensors_(tensors_of(*net_)),
        layout_(layout_of(tensors_)) {
    net_->between_layers = [this] { listener_.check_wanted(); };
    listener_.reported.resize(tensors_.size());
    for (uint32_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].kind != TensorKind::kTrained) continue;
      // Only this vector keeps the accumulating node alive; without it the hook would be destroyed
      // after the first step.
      accumulators_.push_back(torch::autograd::impl::grad_accumulator(tensors_[i].tensor));
      accumulators_.back()->add_post_hook(std::make_unique<ReadyHook>(listener_, i));
    }
  }
  TorchTask(const TorchTask&) = delete;
  TorchTask& operator=(const TorchTask&) = delete;

  const Layout& layout() const override { return layout_; }

  void initial_parameters(std::span<float> parameters) override {
    DROVER_CHECK(parameters.size() == layout_.buffer_size());
    std::fill(parameters.begin(), parameters.end(), 0.0f);
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const uint64_t key = draw({seed_, static_cast<uint64_t>(Purpose::kParameters), i});
      for (uint64_t j = 0; j < layout_.tensors()[i].size; ++j) {
        parameters[layout_.offset(i) + j] = initial_value(tensors_[i].initial, mix_bits(key + j));
      }
    }
  }

  GradientReport gradient(std::span<const float> parameters, const Batch& batch,
                          std::span<float> gradient, GradientListener& listener) override {
    DROVER_CHECK(batch.count >= 1);
    DROVER_CHECK(gradient.size() == layout_.buffer_size());
    point_at(parameters, gradient.data());
    std::fill(gradient.begin(), gradient.end(), 0.0f);
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].kind != TensorKind::kAveraged) continue;
      // The forward pass updates running statistics in place, in the gradient buffer.
      std::copy_n(&parameters[layout_.offset(i)], layout_.tensors()[i].size,
                  &gradient[layout_.offset(i)]);
    }
    net_->train();
    const Listener::Call call(listener_, listener);
    try {
      return add_pieces(batch);
    } catch (const Abandoned&) {
      return {};
    } catch (const c10::Error& trouble) {
      // libtorch has a separate exception type for this only on GPUs.
      const std::string words = trouble.what_without_backtrace();
      if (words.find("allocate") == std::string::npos) throw;
      throw OutOfMemory(words);
    }
  }

  Evaluation evaluate(std::span<const float> parameters) override {
    point_at(parameters, nullptr);
    const torch::NoGradGuard no_gradient;
    net_->eval();
    const bool text = data_->kind == DataKind::kText;
    const uint64_t rows =
        text ? (data_->test.bytes.size() - 1) / kTextContext : data_->test.labels.size();
    const uint64_t rows_at_once = text ? kEvaluationWindows : kEvaluationRows;
    double loss = 0.0;
    uint64_t correct = 0;
    uint64_t predictions = 0;
    for (uint64_t first = 0; first < rows; first += rows_at_once) {
      std::vector<uint64_t> chosen(std::min(rows_at_once, rows - first));
      for (size_t i = 0; i < chosen.size(); ++i)
        chosen[i] = (first + i) * (text ? kTextContext : 1);
      const Samples samples = make_samples(data_->test, chosen);
      const Tensor scores = net_->forward(samples.input);
      const auto here = static_cast<uint64_t>(samples.target.numel());
      loss += torch::nn::functional::cross_entropy(scores, samples.target).item<double>() *
              static_cast<double>(here);
      correct += count_correct(scores, samples.target);
      predictions += here;
    }
    return {.loss = loss / static_cast<double>(predictions),
            .accuracy = static_cast<double>(correct) / static_cast<double>(predictions),
            .samples = rows};
  }

  Status save(std::span<const float> parameters, const std::string& path) override {
    DROVER_CHECK(parameters.size() == layout_.buffer_size());
    c10::Dict<std::string, Tensor> named;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      named.insert(tensors_[i].name, view(parameters.data(), i).clone());
    }
    return write_file_atomically(path, pytorch_file(named));
  }

  std::vector<std::pair<std::string, std::string>> describe() const override {
    return {{"model", model_ + ", " + with_commas(layout_.parameter_count()) + " parameters in " +
                          std::to_string(tensors_.size()) + " tensors"},
            {"data", data_->name + ": " + drover::describe(*data_)}};
  }

 private:
  // The mean over the batch is the mean of its pieces, weighted by samples. So libtorch keeps the
  // activations of only one piece for the backward pass. Batch normalization is computed for each
  // piece separately, and its running statistics are updated once per piece.
  GradientReport add_pieces(const Batch& batch) {
    const uint32_t most = micro_batch_ == 0 ? batch.count : std::min(micro_batch_, batch.count);
    GradientReport report{.finished = true, .samples = batch.count};
    for (uint32_t done = 0; done < batch.count;) {
      const uint32_t count = std::min(most, batch.count - done);
      listener_.last_piece = done + count == batch.count;
      Batch piece = batch;
      piece.first += done;
      piece.count = count;
      add_piece(piece, batch.count, report);
      done += count;
    }
    // Reports running statistics and other tensors without a gradient.
    for (uint32_t i = 0; i < tensors_.size(); ++i) {
      if (!listener_.reported[i]) listener_.report(i);
    }
    return report;
  }

  void add_piece(const Batch& piece, uint32_t samples_in_all, GradientReport& report) {
    listener_.check_wanted();
    std::vector<uint64_t> chosen(piece.count);
    for (uint32_t i = 0; i < piece.count; ++i) chosen[i] = stream_.at(piece, i);
    const Samples samples = make_samples(data_->train, chosen);
    listener_.check_wanted();
    const Tensor scores = net_->forward(samples.input);
    const Tensor loss = torch::nn::functional::cross_entropy(scores, samples.target);
    listener_.check_wanted();
    const double weight = static_cast<double>(piece.count) / samples_in_all;
    (piece.count == samples_in_all ? loss : loss * weight).backward();
    report.loss += loss.item<double>() * weight;
    report.correct += static_cast<uint32_t>(count_correct(scores, samples.target));
    report.predictions += static_cast<uint32_t>(samples.target.numel());
  }

  uint64_t train_size() const {
    return data_->kind == DataKind::kText ? data_->train.bytes.size() - kTextContext
                                          : data_->train.labels.size();
  }

  // A view of tensor `index` in a flat buffer.
  Tensor view(const float* buffer, size_t index) const {
    // libtorch has no tensors of const floats. Parameters are only read through these views.
    return torch::from_blob(const_cast<float*>(buffer) + layout_.offset(index),
                            tensors_[index].tensor.sizes());
  }

  // Makes the model's tensors views of the caller's buffers. `gradient` may be null, for
  // evaluation; then running statistics are read from the parameters.
  void point_at(std::span<const float> parameters, float* gradient) {
    DROVER_CHECK(parameters.size() == layout_.buffer_size());
    if (parameters_at_ == parameters.data() && gradient_at_ == gradient) return;
    const torch::NoGradGuard no_gradient;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      Tensor& tensor = tensors_[i].tensor;
      if (tensors_[i].kind == TensorKind::kTrained) {
        tensor.set_data(view(parameters.data(), i));
        // libtorch accumulates into an existing gradient in place.
        tensor.mutable_grad() = gradient != nullptr ? view(gradient, i) : Tensor();
      } else {
        tensor.set_data(view(gradient != nullptr ? gradient : parameters.data(), i));
      }
    }
    parameters_at_ = parameters.data();
    gradient_at_ = gradient;
  }

  // Rows of a part; for text the windows that begin at `chosen`.
  Samples make_samples(const DataPart& part, const std::vector<uint64_t>& chosen) const {
    const auto count = static_cast<int64_t>(chosen.size());
    if (data_->kind == DataKind::kText) {
      Samples samples{torch::empty({count, kTextContext}, torch::kLong),
                      torch::empty({count * kTextContext}, torch::kLong)};
      auto* input = samples.input.data_ptr<int64_t>();
      auto* target = samples.target.data_ptr<int64_t>();
      for (const uint64_t start : chosen) {
        input = std::copy_n(&part.bytes[start], kTextContext, input);
        target = std::copy_n(&part.bytes[start + 1], kTextContext, target);
      }
      return samples;
    }
    Samples samples{torch::empty({count, data_->channels, data_->height, data_->width}),
                    torch::empty({count}, torch::kLong)};
    copy_rows(*data_, part, chosen,
              {samples.input.data_ptr<float>(), static_cast<size_t>(samples.input.numel())});
    auto* target = samples.target.data_ptr<int64_t>();
    for (size_t i = 0; i < chosen.size(); ++i) target[i] = part.labels[chosen[i]];
    return samples;
  }

  static uint64_t count_correct(const Tensor& scores, const Tensor& target) {
    return static_cast<uint64_t>(scores.detach().argmax(1).eq(target).sum().item<int64_t>());
  }

  std::string model_;
  uint64_t seed_;
  uint32_t micro_batch_;
  std::shared_ptr<const Dataset> data_;
  SampleStream stream_;
  std::shared_ptr<Net> net_;
  std::vector<NetTensor> tensors_;
  Layout layout_;
  Listener listener_;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
  const float* parameters_at_ = nullptr;
  float* gradient_at_ = nullptr;
};

// Each worker process computes on one thread. A launcher must not have started threads when it
// forks workers.
void use_one_thread() {
  at::set_num_threads(1);
  // libtorch allows this to be set only once.
  if (at::get_num_interop_threads() != 1) at::set_num_interop_threads(1);
}

}  // namespace
}  // namespace drover

__attribute__((visibility("default"))) void drover_make_task(drover::ModuleRequest& request) {
  using namespace drover;
  if (request.interface != kModuleInterface) return;
  try {
    use_one_thread();
    request.answer.emplace(std::make_unique<TorchTask>(request.spec, request.data));
  } catch (const std::exception& error) {
    request.answer.emplace(
        system_error("libtorch cannot build model " + request.spec.model + ": " + error.what()));
  }
}

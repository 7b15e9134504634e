#include "tasks/torch/nets.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/check.h"
#include "tasks/model_choice.h"

namespace drover {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

// Softmax regression: one linear layer; the softmax is part of the loss.
class Logistic final : public Net {
 public:
  explicit Logistic(const Dataset& data)
      : linear_(register_module("linear",
                                nn::Linear(static_cast<int64_t>(data.row_size()), data.classes))) {}

  Tensor forward(const Tensor& input) override { return linear_->forward(input.flatten(1)); }

 private:
  nn::Linear linear_;
};

class Mlp final : public Net {
 public:
  explicit Mlp(const Dataset& data)
      : hidden_(register_module("hidden", nn::Linear(static_cast<int64_t>(data.row_size()), 128))),
        output_(register_module("output", nn::Linear(128, data.classes))) {}

  Tensor forward(const Tensor& input) override {
    const Tensor x = torch::relu(hidden_->forward(input.flatten(1)));
    between_layers();
    return output_->forward(x);
  }

 private:
  nn::Linear hidden_;
  nn::Linear output_;
};

// As many parameters as ResNet-50 with little computation for each, so that the time of a run is
// mostly communication. With images of 28 x 28 it has 24.9 million parameters.
class LargeMlp final : public Net {
 public:
  explicit LargeMlp(const Dataset& data) {
    auto in = static_cast<int64_t>(data.row_size());
    for (const int64_t out : {4096, 4096, 1200}) {
      hidden_.push_back(
          register_module("hidden" + std::to_string(hidden_.size()), nn::Linear(in, out)));
      in = out;
    }
    output_ = register_module("output", nn::Linear(in, data.classes));
  }

  Tensor forward(const Tensor& input) override {
    Tensor x = input.flatten(1);
    for (nn::Linear& layer : hidden_) {
      x = torch::relu(layer->forward(x));
      between_layers();
    }
    return output_->forward(x);
  }

 private:
  std::vector<nn::Linear> hidden_;
  nn::Linear output_{nullptr};
};

// The side of an image after a LeNet's convolution: half of the input.
Tensor pooled(nn::Conv2d& convolution, const Tensor& input) {
  return torch::max_pool2d(torch::relu(convolution->forward(input)), 2);
}

// A modern LeNet-5 with ReLU and max pooling. It has more channels (at twice LeNet-5's cost), so
// that it learns MNIST with momentum and a learning rate of 0.05; 8 and 24 channels do not.
class Lenet final : public Net {
 public:
  explicit Lenet(const Dataset& data)
      : conv1_(register_module("conv1", nn::Conv2d(nn::Conv2dOptions(data.channels, kWidth1, 5)))),
        conv2_(register_module("conv2", nn::Conv2d(nn::Conv2dOptions(kWidth1, kWidth2, 5)))),
        fc1_(register_module("fc1",
                             nn::Linear(kWidth2 * left(data.height) * left(data.width), 120))),
        fc2_(register_module("fc2", nn::Linear(120, 84))),
        fc3_(register_module("fc3", nn::Linear(84, data.classes))) {}

  Tensor forward(const Tensor& input) override {
    Tensor x = pooled(conv1_, input);
    between_layers();
    x = pooled(conv2_, x);
    between_layers();
    x = torch::relu(fc1_->forward(x.flatten(1)));
    between_layers();
    x = torch::relu(fc2_->forward(x));
    between_layers();
    return fc3_->forward(x);
  }

 private:
  static constexpr int64_t kWidth1 = 16;
  static constexpr int64_t kWidth2 = 32;
  // The side after two convolutions and poolings.
  static int64_t left(int64_t side) { return ((side - 4) / 2 - 4) / 2; }

  nn::Conv2d conv1_;
  nn::Conv2d conv2_;
  nn::Linear fc1_;
  nn::Linear fc2_;
  nn::Linear fc3_;
};

// The LeNet of the benchmarks: 1.66 million parameters with images of 28 x 28, nearly all in one
// layer.
class WideLenet final : public Net {
 public:
  explicit WideLenet(const Dataset& data)
      : conv1_(register_module("conv1", convolution(data.channels, 32))),
        conv2_(register_module("conv2", convolution(32, 64))),
        fc1_(register_module("fc1", nn::Linear(64 * (data.height / 4) * (data.width / 4), 512))),
        fc2_(register_module("fc2", nn::Linear(512, data.classes))) {}

  Tensor forward(const Tensor& input) override {
    Tensor x = pooled(conv1_, input);
    between_layers();
    x = pooled(conv2_, x);
    between_layers();
    x = torch::relu(fc1_->forward(x.flatten(1)));
    between_layers();
    return fc2_->forward(x);
  }

 private:
  static nn::Conv2d convolution(int64_t in, int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 5).padding(2));
  }

  nn::Conv2d conv1_;
  nn::Conv2d conv2_;
  nn::Linear fc1_;
  nn::Linear fc2_;
};

nn::Conv2d conv3x3(int64_t in, int64_t out, int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
}

class ResidualBlock final : public nn::Module {
 public:
  ResidualBlock(int64_t in, int64_t out, int64_t stride)
      : conv1_(register_module("conv1", conv3x3(in, out, stride))),
        bn1_(register_module("bn1", nn::BatchNorm2d(out))),
        conv2_(register_module("conv2", conv3x3(out, out, 1))),
        bn2_(register_module("bn2", nn::BatchNorm2d(out))),
        stride_(stride),
        added_((out - in) / 2) {}

  Tensor forward(const Tensor& input, const std::function<void()>& between_layers) {
    const Tensor x = torch::relu(bn1_->forward(conv1_->forward(input)));
    between_layers();
    return torch::relu(bn2_->forward(conv2_->forward(x)) + shortcut(input));
  }

 private:
  // The shortcut has no parameters: it takes every second pixel, and zeros for new channels.
  Tensor shortcut(const Tensor& input) const {
    if (stride_ == 1 && added_ == 0) return input;
    const Tensor fewer = input.slice(2, 0, std::numeric_limits<int64_t>::max(), stride_)
                             .slice(3, 0, std::numeric_limits<int64_t>::max(), stride_);
    return torch::constant_pad_nd(fewer, {0, 0, 0, 0, added_, added_});
  }

  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  int64_t stride_;
  int64_t added_;
};

// The residual network of 20 layers for CIFAR: three stages of three blocks.
class Resnet20 final : public Net {
 public:
  explicit Resnet20(const Dataset& data)
      : conv1_(register_module("conv1", conv3x3(data.channels, 16, 1))),
        bn1_(register_module("bn1", nn::BatchNorm2d(16))) {
    int64_t in = 16;
    for (const int64_t out : {16, 32, 64}) {
      for (int64_t block = 0; block < 3; ++block) {
        const std::string name =
            "layer" + std::to_string(blocks_.size() / 3 + 1) + "_" + std::to_string(block);
        blocks_.push_back(register_module(
            name, std::make_shared<ResidualBlock>(in, out, block == 0 && out != 16 ? 2 : 1)));
        in = out;
      }
    }
    fc_ = register_module("fc", nn::Linear(64, data.classes));
  }

  Tensor forward(const Tensor& input) override {
    Tensor x = torch::relu(bn1_->forward(conv1_->forward(input)));
    for (const auto& block : blocks_) {
      between_layers();
      x = block->forward(x, between_layers);
    }
    between_layers();
    return fc_->forward(x.mean({2, 3}));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  std::vector<std::shared_ptr<ResidualBlock>> blocks_;
  nn::Linear fc_{nullptr};
};

constexpr int64_t kModelWidth = 64;
constexpr int64_t kHeads = 4;
constexpr int64_t kTransformerLayers = 2;

nn::LayerNorm layer_norm() { return nn::LayerNorm(nn::LayerNormOptions({kModelWidth})); }

class TransformerBlock final : public nn::Module {
 public:
  TransformerBlock()
      : norm1_(register_module("norm1", layer_norm())),
        qkv_(register_module("qkv", nn::Linear(kModelWidth, 3 * kModelWidth))),
        mix_(register_module("mix", nn::Linear(kModelWidth, kModelWidth))),
        norm2_(register_module("norm2", layer_norm())),
        up_(register_module("up", nn::Linear(kModelWidth, 4 * kModelWidth))),
        down_(register_module("down", nn::Linear(4 * kModelWidth, kModelWidth))) {}

  // `hidden` is -infinity where a character would attend to a later one.
  Tensor forward(const Tensor& input, const Tensor& hidden,
                 const std::function<void()>& between_layers) {
    const Tensor x = input + attend(norm1_->forward(input), hidden);
    between_layers();
    return x + down_->forward(torch::gelu(up_->forward(norm2_->forward(x))));
  }

 private:
  Tensor attend(const Tensor& x, const Tensor& hidden) {
    const int64_t samples = x.size(0);
    const int64_t length = x.size(1);
    constexpr int64_t kHeadWidth = kModelWidth / kHeads;
    const Tensor qkv =
        qkv_->forward(x).view({samples, length, 3, kHeads, kHeadWidth}).permute({2, 0, 3, 1, 4});
    const Tensor scores = torch::matmul(qkv[0], qkv[1].transpose(-2, -1)) /
                              std::sqrt(static_cast<double>(kHeadWidth)) +
                          hidden;
    const Tensor seen = torch::matmul(torch::softmax(scores, -1), qkv[2]);
    return mix_->forward(seen.transpose(1, 2).reshape({samples, length, kModelWidth}));
  }

  nn::LayerNorm norm1_;
  nn::Linear qkv_;
  nn::Linear mix_;
  nn::LayerNorm norm2_;
  nn::Linear up_;
  nn::Linear down_;
};

// Predicts each character of a window from the preceding ones.
class Transformer final : public Net {
 public:
  explicit Transformer(const Dataset& data)
      : characters_(register_module("characters", nn::Embedding(data.classes, kModelWidth))),
        positions_(
            register_module("positions", nn::Embedding(int64_t{kTextContext}, kModelWidth))) {
    for (int64_t layer = 0; layer < kTransformerLayers; ++layer) {
      blocks_.push_back(
          register_module("block" + std::to_string(layer), std::make_shared<TransformerBlock>()));
    }
    norm_ = register_module("norm", layer_norm());
    output_ = register_module("output", nn::Linear(kModelWidth, data.classes));
    places_ = torch::arange(int64_t{kTextContext});
    hidden_ =
        torch::full({kTextContext, kTextContext}, -std::numeric_limits<float>::infinity()).triu(1);
  }

  Tensor forward(const Tensor& input) override {
    Tensor x = characters_->forward(input) + positions_->forward(places_);
    for (const auto& block : blocks_) {
      between_layers();
      x = block->forward(x, hidden_, between_layers);
    }
    between_layers();
    return output_->forward(norm_->forward(x)).flatten(0, 1);
  }

 private:
  nn::Embedding characters_;
  nn::Embedding positions_;
  std::vector<std::shared_ptr<TransformerBlock>> blocks_;
  nn::LayerNorm norm_{nullptr};
  nn::Linear output_{nullptr};
  Tensor places_;
  Tensor hidden_;
};

constexpr double kEmbeddingDeviation = 0.1;

InitialValues initial_values(const nn::Module& module, const std::string& tensor) {
  using Kind = InitialValues::Kind;
  Tensor weight;
  if (const auto* linear = module.as<nn::Linear>()) weight = linear->weight;
  if (const auto* conv = module.as<nn::Conv2d>()) weight = conv->weight;
  if (weight.defined()) {
    const auto inputs = static_cast<double>(weight.numel() / weight.size(0));
    return {Kind::kUniform, 1.0 / std::sqrt(inputs)};
  }
  if (module.as<nn::Embedding>() != nullptr) return {Kind::kNormal, kEmbeddingDeviation};
  // The rest are normalization layers, which start as the identity.
  const bool one = tensor == "weight" || tensor == "running_var";
  return {Kind::kConstant, one ? 1.0 : 0.0};
}

}  // namespace

std::shared_ptr<Net> make_net(const std::string& model, const Dataset& dataset) {
  if (model == "logistic") return std::make_shared<Logistic>(dataset);
  if (model == "mlp") return std::make_shared<Mlp>(dataset);
  if (model == "mlp25m") return std::make_shared<LargeMlp>(dataset);
  if (model == "lenet") return std::make_shared<Lenet>(dataset);
  if (model == "lenet-wide") return std::make_shared<WideLenet>(dataset);
  if (model == "resnet20") return std::make_shared<Resnet20>(dataset);
  DROVER_CHECK(model == "transformer");
  return std::make_shared<Transformer>(dataset);
}

std::vector<NetTensor> tensors_of(const Net& net) {
  std::vector<NetTensor> tensors;
  std::vector<NetTensor> averaged;  // after the others, so that tensors of one kind are adjacent
  for (const auto& module : net.named_modules("", /*include_self=*/false)) {
    const auto add = [&](const std::string& name, const Tensor& tensor, TensorKind kind) {
      (kind == TensorKind::kTrained ? tensors : averaged)
          .push_back(
              {module.key() + "." + name, tensor, kind, initial_values(*module.value(), name)});
    };
    for (const auto& parameter : module.value()->named_parameters(/*recurse=*/false)) {
      add(parameter.key(), parameter.value(), TensorKind::kTrained);
    }
    for (const auto& buffer : module.value()->named_buffers(/*recurse=*/false)) {
      if (buffer.key() == "num_batches_tracked") continue;
      add(buffer.key(), buffer.value(), TensorKind::kAveraged);
    }
  }
  std::move(averaged.begin(), averaged.end(), std::back_inserter(tensors));
  return tensors;
}

}  // namespace drover

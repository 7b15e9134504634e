// The models as libtorch modules, and their tensors in the order of the layout.
//
// This header includes libtorch, so only the two sources of libdrover_torch.so may include it.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/layout.h"
#include "tasks/data/dataset.h"

namespace drover {

class Net : public torch::nn::Module {
 public:
  // The input is images or rows (samples first), or characters as indices (samples x characters).
  // The output has one row of class scores per prediction.
  virtual torch::Tensor forward(const torch::Tensor& input) = 0;

  // Called between the layers of a forward pass; may throw to abort it.
  std::function<void()> between_layers = [] {};
};

// REQUIRES: check_model_fits(model, dataset).
std::shared_ptr<Net> make_net(const std::string& model, const Dataset& dataset);

// The distribution of a tensor's initial values: PyTorch's defaults, with drover's random numbers.
struct InitialValues {
  enum class Kind : uint8_t { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  double scale = 0.0;  // the constant, the bound, or the deviation
};

struct NetTensor {
  std::string name;  // as in PyTorch's state_dict()
  torch::Tensor tensor;
  TensorKind kind = TensorKind::kTrained;
  InitialValues initial;
};

// The tensors in the order in which modules were registered. num_batches_tracked, which is not a
// float and not used here, is omitted.
std::vector<NetTensor> tensors_of(const Net& net);

}  // namespace drover

// The models themselves: libtorch modules, and the list of their tensors in the order of the
// layout.
//
// Includes libtorch, so only the two sources of libdrover_torch.so may include it.
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
  // Images or rows in (samples first), or characters as indices (samples x characters); one row of
  // class scores out per prediction.
  virtual torch::Tensor forward(const torch::Tensor& input) = 0;

  // Called between the layers of a forward pass; may throw to leave it off there.
  std::function<void()> between_layers = [] {};
};

// REQUIRES: check_model_fits(model, dataset).
std::shared_ptr<Net> make_net(const std::string& model, const Dataset& dataset);

// The distribution a tensor's values start from: PyTorch's own defaults, without its generator.
struct InitialValues {
  enum class Kind : uint8_t { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  double scale = 0.0;  // the constant, the bound, or the deviation
};

struct NetTensor {
  std::string name;  // as PyTorch's state_dict() would have it
  torch::Tensor tensor;
  TensorKind kind = TensorKind::kTrained;
  InitialValues initial;
};

// Module by module in the order they were registered. num_batches_tracked is left out: it is no
// float and nothing here uses it.
std::vector<NetTensor> tensors_of(const Net& net);

}  // namespace drover

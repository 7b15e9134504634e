// ModelAgreement: the model and the learning rules that all peers of a run share. The first peer
// that brings a model decides. A peer whose model or optimiser differs from the first peer's, or
// from those of the checkpoint that the run continues from, is refused.
#pragma once

#include <optional>
#include <vector>

#include "core/layout.h"
#include "core/learning_rules.h"
#include "core/result.h"
#include "core/training.h"
#include "wire/control.h"

namespace drover {

class ModelAgreement {
 public:
  // The model and settings of the checkpoint that the run continues from.
  struct Prior {
    std::vector<TensorSpec> tensors;
    SettingTexts settings;
  };
  // `workers_bring_model`: workers bring the learning rules, too; otherwise `rules` are final.
  ModelAgreement(const LearningRules& rules, bool workers_bring_model, std::optional<Prior> prior)
      : workers_bring_model_(workers_bring_model), prior_(std::move(prior)), rules_(rules) {}

  // The hello of a worker or of the evaluator. An error is the reason to refuse the peer and
  // changes nothing.
  Status admit(const Hello& hello);

  // Absent until a peer has brought a model.
  const std::optional<Layout>& layout() const { return layout_; }
  const LearningRules& rules() const { return rules_; }
  // The rules as text, in the form that checkpoints keep.
  SettingTexts settings() const;

 private:
  Result<Layout> check_model(const Hello& hello) const;
  Status admit_learning(const Hello& hello);

  const bool workers_bring_model_;
  const std::optional<Prior> prior_;
  std::optional<Layout> layout_;
  LearningRules rules_;
  std::optional<Learning> brought_;  // by the first worker
};

}  // namespace drover

// ModelAgreement: what a run learns and how. The first peer that brings a model decides; a peer
// whose model or optimiser differs, from it or from what the run continues from, is refused.
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
  // What a run that continues has learned so far, and how.
  struct Prior {
    std::vector<TensorSpec> tensors;
    SettingTexts settings;
  };
  // `workers_bring_model`: they say how to learn it, too; else `rules` are final.
  ModelAgreement(const LearningRules& rules, bool workers_bring_model, std::optional<Prior> prior)
      : workers_bring_model_(workers_bring_model), prior_(std::move(prior)), rules_(rules) {}

  // The hello of a worker or of the evaluator. An error is the reason to refuse it.
  Status admit(const Hello& hello);

  // Nothing until a peer has brought a model.
  const std::optional<Layout>& layout() const { return layout_; }
  const LearningRules& rules() const { return rules_; }
  // The same as texts, as checkpoints keep them.
  SettingTexts settings() const;

 private:
  Status admit_model(const Hello& hello);
  Status admit_learning(const Hello& hello);

  const bool workers_bring_model_;
  const std::optional<Prior> prior_;
  std::optional<Layout> layout_;
  LearningRules rules_;
  std::optional<Learning> brought_;  // by the first worker
};

}  // namespace drover

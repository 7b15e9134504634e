#include "coordinator/model_agreement.h"

#include <algorithm>
#include <string>
#include <utility>

namespace drover {
namespace {

std::string words(const Learning& learning) {
  return std::string(name_of(learning.optimizer.kind)) + " with a learning rate of " +
         std::to_string(learning.rate);
}

std::string words(const Layout& layout) {
  return std::to_string(layout.parameter_count()) + " parameters in " +
         std::to_string(layout.tensors().size()) + " tensors";
}

// REQUIRES: they differ. `is_first`: `wanted` is the model of the checkpoint; otherwise it is that
// of the other processes.
std::string difference(const Layout& theirs, const Layout& wanted, bool is_first) {
  const auto [their_tensor, wanted_tensor] =
      std::mismatch(theirs.tensors().begin(), theirs.tensors().end(), wanted.tensors().begin(),
                    wanted.tensors().end());
  const std::string first = their_tensor != theirs.tensors().end() ? their_tensor->name : "none";
  const std::string instead =
      wanted_tensor != wanted.tensors().end() ? wanted_tensor->name : "none";
  return "its model differs from that of " +
         std::string(is_first ? "the checkpoint" : "the other processes") + ": " + words(theirs) +
         " instead of " + words(wanted) + "; first different tensor: " + first +
         (first == instead ? " (its size or learning settings)" : " instead of " + instead) +
         (is_first ? ". Start it with the job of the checkpoint, or without --resume"
                   : ". Start all processes with the same job");
}

}  // namespace

Status ModelAgreement::admit(const Hello& hello) {
  Result<Layout> layout = check_model(hello);
  if (!layout) return layout.error();
  if (hello.role == Role::kWorker && workers_bring_model_) {
    if (const Status same = admit_learning(hello); !same) return same;
  }
  // Stored only now: a refused peer must not decide the model.
  layout_ = std::move(layout).value();
  return done();
}

Result<Layout> ModelAgreement::check_model(const Hello& hello) const {
  const Layout theirs(hello.tensors);
  if (hello.tensors.empty()) return invalid_input("its model has no tensors");
  const Layout wanted = layout_ ? *layout_ : prior_ ? Layout(prior_->tensors) : theirs;
  if (!(theirs == wanted)) return invalid_input(difference(theirs, wanted, !layout_));
  return wanted;
}

Status ModelAgreement::admit_learning(const Hello& hello) {
  if (!hello.learning) return invalid_input("its hello has no optimiser settings");
  if (!brought_) {
    OptimizerSettings optimizer = hello.learning->optimizer;
    optimizer.ema_decay = rules_.optimizer.ema_decay;
    if (prior_) {
      if (const auto other = differences(prior_->settings, texts_of(optimizer)))
        return invalid_input("its optimiser differs from that of the checkpoint: " + *other +
                             ". Start it with the same arguments, or without --resume");
    }
    brought_ = hello.learning;
    rules_.optimizer = optimizer;
    rules_.schedule.kind = ScheduleKind::kConstant;
    rules_.schedule.base = hello.learning->rate;
  }
  if (*hello.learning == *brought_) return done();
  return invalid_input("its optimiser (" + words(*hello.learning) +
                       ") or its settings differ from those of the other workers (" +
                       words(*brought_) + "); start all with the same script and arguments");
}

SettingTexts ModelAgreement::settings() const {
  SettingTexts texts = texts_of(rules_.optimizer);
  texts.merge(texts_of(rules_.schedule));
  return texts;
}

}  // namespace drover

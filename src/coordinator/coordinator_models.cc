// What a run learns and how: who says otherwise than the others, or than the checkpoint that the
// run goes on from, is refused.
#include <algorithm>

#include "coordinator/coordinator.h"

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

}  // namespace

// The first who comes says how to learn; the others have to say the same.
Status Coordinator::admit_learning(const Hello& hello) {
  if (!settings_.workers_bring_model) return done();
  if (!hello.learning) return invalid_input("it does not say how its model is to be learned");
  if (!learning_.told) {
    OptimizerSettings optimizer = hello.learning->optimizer;
    optimizer.ema_decay = learning_.rules.optimizer.ema_decay;
    if (settings_.resume) {
      const auto other = differences(settings_.resume->settings, texts_of(optimizer));
      if (other)
        return invalid_input("its optimiser is not that of the checkpoint: " + *other +
                             ". Start it with the same arguments, or without --resume");
    }
    learning_.told = hello.learning;
    learning_.rules.optimizer = optimizer;
    learning_.rules.schedule.kind = ScheduleKind::kConstant;
    learning_.rules.schedule.base = hello.learning->rate;
  }
  if (*hello.learning == *learning_.told) return done();
  return invalid_input("its optimiser (" + words(*hello.learning) +
                       ") is not that of the others (" + words(*learning_.told) +
                       "), or is set otherwise; start all with the same script and arguments");
}

Status Coordinator::admit_model(const Hello& hello) {
  const Layout theirs(hello.tensors);
  if (hello.tensors.empty()) return invalid_input("its model has no tensors");
  const bool is_first = !layout_;
  const Layout wanted = layout_            ? *layout_
                        : settings_.resume ? Layout(settings_.resume->tensors)
                                           : theirs;
  if (theirs == wanted) {
    layout_ = wanted;
    return done();
  }
  const auto [mine, others] = std::mismatch(theirs.tensors().begin(), theirs.tensors().end(),
                                            wanted.tensors().begin(), wanted.tensors().end());
  const std::string first = mine != theirs.tensors().end() ? mine->name : "none";
  const std::string instead = others != wanted.tensors().end() ? others->name : "none";
  const std::string whose = is_first ? "it has " : "theirs has ";
  return invalid_input(
      "its model differs from that of " + std::string(is_first ? "the checkpoint" : "the others") +
      ": " + words(theirs) + ", " + whose + words(wanted) + "; the first that differs is " + first +
      (first == instead ? ", in size or in how it is learned" : ", where " + whose + instead) +
      (is_first ? ". Start it with the job of the checkpoint, or without --resume"
                : ". Start all with the same job"));
}

}  // namespace drover

#include "tasks/model_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/nearest.h"

namespace drover {
namespace {

constexpr std::array<std::string_view, 7> kModels = {
    "logistic", "mlp", "mlp25m", "lenet", "lenet-wide", "resnet20", "transformer"};
constexpr uint32_t kLenetSideMin =
    16;  // two convolutions of 5 x 5 and two poolings leave one pixel
constexpr uint32_t kOtherSideMin = 8;

const char* kind_name(DataKind kind) {
  switch (kind) {
    case DataKind::kImages:
      return "images";
    case DataKind::kRows:
      return "rows of features";
    case DataKind::kText:
      return "text";
  }
  return "";
}

}  // namespace

std::vector<std::string_view> known_models() { return {kModels.begin(), kModels.end()}; }

Status check_model_name(const std::string& model) {
  if (std::find(kModels.begin(), kModels.end(), model) != kModels.end()) return done();
  return invalid_input(fmt::format("model: unknown model '{}'; known: {}.{}", model,
                                   fmt::join(kModels, ", "), did_you_mean(model, kModels)));
}

Status check_model_fits(const std::string& model, const Dataset& dataset) {
  const auto mismatch = [&](const char* wanted, const char* instead) {
    return invalid_input(fmt::format("model {} learns from {}, but {} holds {}; try model {}",
                                     model, wanted, dataset.name, kind_name(dataset.kind),
                                     instead));
  };
  const char* instead = dataset.kind == DataKind::kText     ? "transformer"
                        : dataset.kind == DataKind::kImages ? "lenet, mlp or logistic"
                                                            : "mlp or logistic";
  if (model == "transformer") {
    if (dataset.kind != DataKind::kText) return mismatch("text", instead);
    if (dataset.train.bytes.size() <= kTextContext || dataset.test.bytes.size() <= kTextContext) {
      return invalid_input(fmt::format(
          "{} is too short: {} + {} characters for training and testing, but each needs more than "
          "{}",
          dataset.name, dataset.train.bytes.size(), dataset.test.bytes.size(), kTextContext));
    }
    return done();
  }
  if (model == "logistic" || model == "mlp" || model == "mlp25m") {
    if (dataset.kind == DataKind::kText) return mismatch("images or rows of features", instead);
    return done();
  }
  if (dataset.kind != DataKind::kImages) return mismatch("images", instead);
  const uint32_t side_min = model == "lenet" ? kLenetSideMin : kOtherSideMin;
  if (std::min(dataset.height, dataset.width) < side_min) {
    return invalid_input(fmt::format(
        "model {} needs images of at least {} x {}, but {} holds {} x {}; try model mlp", model,
        side_min, side_min, dataset.name, dataset.height, dataset.width));
  }
  return done();
}

}  // namespace drover

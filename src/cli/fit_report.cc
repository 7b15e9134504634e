#include "cli/fit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/run_report.h"
#include "core/check.h"
#include "core/text.h"

namespace drover {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kColumns = 6;
using Cells = std::array<std::string, kColumns>;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// A file name need not be UTF-8; JSON must.
std::string one_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string score(double value) {
  return std::isfinite(value) ? fmt::format("{:.4f}", value) : "-";
}

struct Size {
  std::string_view name;
  uint32_t value;
};

// The sizes that this emission has.
std::vector<Size> sizes_of(const ModelShape& shape) {
  std::vector<Size> sizes = {{"latent", shape.latent},
                             {"window", shape.window},
                             {"rnn", shape.rnn},
                             {"transition", shape.transition}};
  if (shape.emission == Emission::kShared) {
    sizes.insert(sizes.end(), {{"embedding", shape.embedding},
                               {"pooled_hidden", shape.pooled_hidden},
                               {"pooled", shape.pooled},
                               {"worker_hidden", shape.worker_hidden},
                               {"components", shape.components}});
  } else {
    sizes.push_back({"emission_hidden", shape.emission_hidden});
  }
  return sizes;
}

std::string table(const std::vector<JudgedForecaster>& judged) {
  std::vector<Cells> lines = {{"", "coverage", "coverage", "coverage", "CRPS of", "CRPS of"},
                              {"forecaster", "50 %", "90 %", "99 %", "run-times", "arrivals"}};
  for (const JudgedForecaster& each : judged) {
    // A forecaster of the order alone is judged by the order.
    const Calibration& times = each.calibration.workers;
    const Calibration& order = each.calibration.order;
    const Calibration& shown = times.judged > 0 ? times : order;
    lines.push_back({each.name + (each.kept ? " (kept)" : ""), percent(shown.covered_50),
                     percent(shown.covered_90), percent(shown.covered_99), score(times.crps),
                     score(order.crps)});
  }
  std::array<size_t, kColumns> widths{};
  for (const Cells& cells : lines) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string text;
  for (const Cells& cells : lines) {
    text += fmt::format("{:<{}}", cells[0], widths[0]);
    for (size_t i = 1; i < kColumns; ++i) text += fmt::format("  {:>{}}", cells[i], widths[i]);
    text += '\n';
  }
  return text;
}

// The conclusion from the table: which forecaster is the best one to use.
std::string verdict(const std::vector<JudgedForecaster>& judged) {
  const auto kept = std::find_if(judged.begin(), judged.end(),
                                 [](const JudgedForecaster& each) { return each.kept; });
  if (kept == judged.end()) return "";
  std::string text;
  const JudgedForecaster* best_other = nullptr;
  for (const JudgedForecaster& each : judged) {
    const double crps = each.calibration.order.crps;
    if (each.model && !each.kept) {
      text += fmt::format("kept {} instead of {}: it forecasts arrivals more accurately\n",
                          kept->name, each.name);
    }
    if (each.model || !std::isfinite(crps)) continue;
    if (best_other == nullptr || crps < best_other->calibration.order.crps) best_other = &each;
  }
  if (best_other == nullptr) return text;
  const double ours = kept->calibration.order.crps;
  const double theirs = best_other->calibration.order.crps;
  if (std::isfinite(ours) && ours <= theirs) return text;
  return text +
         fmt::format(
             "{0} forecasts these steps better than the model: fit to more steps, or use {0}\n",
             best_other->name);
}

}  // namespace

FitPoint kept_point(const FitSummary& summary) {
  DROVER_CHECK(!summary.curve.empty());
  const auto kept = std::find_if(
      summary.curve.begin(), summary.curve.end(),
      [&](const FitPoint& point) { return point.held_out_elbo == summary.note.held_out_elbo; });
  return kept != summary.curve.end() ? *kept : summary.curve.back();
}

std::string to_text(const FitSummary& summary) {
  const FitPoint point = kept_point(summary);
  std::string text =
      fmt::format("{}: {} steps x {} workers", fmt::join(summary.sources, ", "),
                  with_commas(summary.note.steps), with_commas(summary.shape.workers));
  if (summary.note.cut_short_share > 0.0) {
    text += fmt::format(", {} of run-times censored", percent(summary.note.cut_short_share));
  }
  text += fmt::format("\n{} model, {} of at most {} iterations in {:.1f} s",
                      name_of(summary.shape.emission), with_commas(summary.iterations),
                      with_commas(summary.iterations_limit), summary.seconds);
  text += fmt::format("; ELBO per run-time {:.3f}", point.train_elbo);
  if (std::isfinite(point.held_out_elbo)) {
    text += fmt::format(", held out {:.3f} (iteration {})", point.held_out_elbo,
                        with_commas(point.iteration));
  }
  if (!summary.judged.empty()) {
    text += fmt::format("\n\nForecasts of the last {} steps (held out):\n\n{}",
                        with_commas(summary.held_out), table(summary.judged));
    text += verdict(summary.judged);
  } else {
    text += '\n';
  }
  if (summary.interrupted) text += "interrupted: saved the best model so far\n";
  // The policy bayes needs forecasts by worker, which a sorted model does not make.
  const bool sorted = summary.shape.emission == Emission::kSorted;
  return text + fmt::format("saved {0}; use it with --policy {1}:model={0}\n",
                            shell_quoted(summary.model_file), sorted ? "bayes-paper" : "bayes");
}

std::string to_json_line(const FitSummary& summary) {
  const FitPoint point = kept_point(summary);
  Json json;
  json["model"] = summary.model_file;
  json["sources"] = summary.sources;
  json["emission"] = name_of(summary.shape.emission);
  json["steps"] = summary.note.steps;
  json["workers"] = summary.shape.workers;
  json["held_out_steps"] = summary.held_out;
  json["cut_short_share"] = number(summary.note.cut_short_share);
  json["seed"] = summary.note.seed;
  json["iterations"] = summary.iterations;
  json["iterations_limit"] = summary.iterations_limit;
  json["kept_iteration"] = point.iteration;
  json["seconds"] = number(summary.seconds);
  json["interrupted"] = summary.interrupted;
  json["train_elbo"] = number(point.train_elbo);
  json["held_out_elbo"] = number(point.held_out_elbo);
  json["forecasts"] = Json::array();
  for (const JudgedForecaster& each : summary.judged) {
    Json row;
    row["name"] = each.name;
    row["kept"] = each.kept;
    row["judged_steps"] = each.calibration.steps;
    const std::array<std::pair<std::string_view, const Calibration*>, 2> parts = {
        {{"run_times", &each.calibration.workers}, {"arrivals", &each.calibration.order}}};
    for (const auto& [key, part] : parts) {
      row[std::string(key)] = {{"judged", part->judged},
                               {"covered_50", number(part->covered_50)},
                               {"covered_90", number(part->covered_90)},
                               {"covered_99", number(part->covered_99)},
                               {"crps", number(part->crps)}};
    }
    json["forecasts"].push_back(row);
  }
  json["curve"] = Json::array();
  for (const FitPoint& each : summary.curve) {
    json["curve"].push_back({{"iteration", each.iteration},
                             {"train_elbo", number(each.train_elbo)},
                             {"held_out_elbo", number(each.held_out_elbo)}});
  }
  return one_line(json);
}

std::string model_text(const std::string& path, const ModelWeights& weights) {
  std::string text = fmt::format("{}: {} model of run-times, fitted to {} steps x {} workers", path,
                                 name_of(weights.shape.emission), with_commas(weights.note.steps),
                                 with_commas(weights.shape.workers));
  text += fmt::format("\nseed {}, {} of run-times censored", weights.note.seed,
                      percent(weights.note.cut_short_share));
  if (std::isfinite(weights.note.held_out_elbo)) {
    text += fmt::format(", held-out ELBO per run-time {:.3f}", weights.note.held_out_elbo);
  }
  uint64_t parameters = 0;
  for (const Tensor& tensor : weights.tensors) parameters += tensor.values.size();
  text += fmt::format("\n{} parameters;", with_commas(parameters));
  const char* separator = " ";
  for (const Size& size : sizes_of(weights.shape)) {
    text += fmt::format("{}{} {}", separator, size.name, size.value);
    separator = ", ";
  }
  return text + '\n';
}

std::string model_json_line(const std::string& path, const ModelWeights& weights) {
  Json json;
  json["model"] = path;
  json["emission"] = name_of(weights.shape.emission);
  json["steps"] = weights.note.steps;
  json["workers"] = weights.shape.workers;
  json["cut_short_share"] = number(weights.note.cut_short_share);
  json["seed"] = weights.note.seed;
  json["held_out_elbo"] = number(weights.note.held_out_elbo);
  for (const Size& size : sizes_of(weights.shape))
    json["shape"][std::string(size.name)] = size.value;
  return one_line(json);
}

}  // namespace drover

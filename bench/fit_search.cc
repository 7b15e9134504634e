// For finding the defaults of learned models and of fitting: fits a model to the first half of each
// trace, scores its forecasts of the second half and those of the empirical forecaster, and prints
// one line of JSON per trace.
//
//   fit_search TRACE... [KEY=VALUE...]
//
// Keys are the members of ModelShape and FitSettings; a key that is not given has its default.
#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fit/fit_module.h"
#include "forecast/forecasters.h"
#include "forecast/learned/calibration.h"
#include "forecast/learned/impute.h"
#include "forecast/learned/model_forecaster.h"
#include "sim/times_record.h"

namespace drover {
namespace {

using Json = nlohmann::ordered_json;
using Given = std::map<std::string, std::string>;

constexpr uint32_t kJudgedSamples = 512;

template <typename Number>
Status set_number(const std::string& key, const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, trouble] = std::from_chars(text.data(), end, number);
  if (trouble == std::errc{} && stop == end) return done();
  return invalid_input(fmt::format("{}={} is not a valid number", key, text));
}

// Applies the given keys to the defaults.
Status set_all(const Given& given, uint32_t workers, FitRequest& request) {
  ModelShape& shape = request.shape;
  FitSettings& settings = request.settings;
  Emission emission = Emission::kShared;
  if (given.contains("emission")) {
    const Result<Emission> parsed = parse_emission(given.at("emission"));
    if (!parsed) return parsed.error();
    emission = parsed.value();
  }
  shape = default_shape(emission, workers);
  const std::map<std::string, uint32_t*> counts = {
      {"latent", &shape.latent},
      {"window", &shape.window},
      {"rnn", &shape.rnn},
      {"transition", &shape.transition},
      {"embedding", &shape.embedding},
      {"pooled_hidden", &shape.pooled_hidden},
      {"pooled", &shape.pooled},
      {"worker_hidden", &shape.worker_hidden},
      {"components", &shape.components},
      {"emission_hidden", &shape.emission_hidden},
      {"iterations", &settings.iterations},
      {"batch", &settings.batch},
      {"workers_a_batch", &settings.workers_a_batch},
      {"judge_every", &settings.judge_every},
      {"patience", &settings.patience},
  };
  const std::map<std::string, double*> reals = {{"learning_rate", &settings.learning_rate},
                                                {"kl_warmup", &settings.kl_warmup},
                                                {"foresight", &settings.foresight},
                                                {"held_out", &settings.held_out}};
  for (const auto& [key, text] : given) {
    Status status = done();
    if (counts.contains(key)) {
      status = set_number(key, text, *counts.at(key));
    } else if (reals.contains(key)) {
      status = set_number(key, text, *reals.at(key));
    } else if (key == "seed") {
      status = set_number(key, text, settings.seed);
    } else if (key != "emission") {
      status = invalid_input(fmt::format("unknown setting '{}'", key));
    }
    if (!status) return status;
  }
  return check_shape(shape);
}

// Null for what was not forecast: a sorted forecast has no run-times per worker.
Json json_of(const ForecasterCalibration& found) {
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  return {{"steps", found.steps},
          {"run_times_crps", number(found.workers.crps)},
          {"run_times_covered_90", number(found.workers.covered_90)},
          {"arrivals_crps", number(found.order.crps)},
          {"arrivals_covered_90", number(found.order.covered_90)}};
}

// The line of JSON.
Result<std::string> search(const std::string& path, const Given& given, const FitFunction& fit) {
  const Result<TimesRecord> record = read_record(path);
  if (!record) return record.error();
  const std::span<const StepTimes> steps = record.value().steps;
  const size_t half = steps.size() / 2;
  FitRequest request;
  if (Status status = set_all(given, record.value().workers, request); !status) {
    return status.error();
  }
  const uint64_t seed = request.settings.seed;
  request.history = std::make_shared<const History>(history_of(steps.first(half), seed));
  uint32_t iterations = 0;
  const std::clock_t began = std::clock();  // CPU time, not wall-clock time
  Result<FitOutcome> outcome = fit(request, [&](uint32_t iteration, const FitPoint*) {
    iterations = iteration;
    return true;
  });
  const double seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  if (!outcome) return outcome.error();
  const auto weights = std::make_shared<const ModelWeights>(std::move(outcome.value().weights));
  size_t parameters = 0;
  for (const Tensor& tensor : weights->tensors) parameters += tensor.values.size();
  ModelForecaster model(weights, seed, kJudgedSamples);
  const auto ecdf = make_ecdf({.seed = seed, .warmup = 1, .samples = kJudgedSamples});
  const Json line = {{"trace", path},
                     {"settings", given},
                     {"workers", record.value().workers},
                     {"fitted_steps", half},
                     {"model", json_of(calibrate(model, steps, half))},
                     {"ecdf", json_of(calibrate(*ecdf, steps, half))},
                     {"iterations", iterations},
                     {"fit_cpu_seconds", seconds},
                     {"parameters", parameters}};
  return line.dump();
}

int fit_search(const std::vector<std::string>& words) {
  std::vector<std::string> traces;
  Given given;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      traces.push_back(word);
    } else {
      given[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  if (traces.empty()) {
    fmt::print(stderr, "usage: fit_search TRACE... [KEY=VALUE...]\n");
    return 2;
  }
  const Result<FitFunction> fit = load_fit_function();
  if (!fit) {
    fmt::print(stderr, "fit_search: {}\n", fit.error().message);
    return 1;
  }
  int status = 0;
  for (const std::string& trace : traces) {
    const Result<std::string> line = search(trace, given, fit.value());
    if (line) {
      // Prints the whole line at once, because several processes may write to one file.
      fmt::print("{}\n", line.value());
      std::fflush(stdout);
    } else {
      fmt::print(stderr, "fit_search: {}: {}\n", trace, line.error().message);
      status = 1;
    }
  }
  return status;
}

}  // namespace
}  // namespace drover

int main(int argc, char** argv) { return drover::fit_search({argv + 1, argv + argc}); }

// Measures how far forecasts of always censored workers drift from the truth, on simulated clusters
// with a known distribution: the error of imputed run-times, and the benefit of probes, which let a
// share of the censored workers finish.
// drift_cluster.h has the simulated record that all forecasters learn, drift_measures.h the scores.
//   drift [--seeds N] [--cluster NAME] [--forecaster NAME] [--json]
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "drift_cluster.h"
#include "drift_measures.h"
#include "fit/fit_module.h"
#include "forecast/forecasters.h"
#include "forecast/learned/impute.h"
#include "forecast/learned/stepped_fitter.h"
#include "sim/observed_times.h"

namespace drover {
namespace {

constexpr Step kFitTakes = 20;  // steps, as in replays

Measures follow(const std::vector<Recorded>& steps, Forecaster& forecaster, double probe,
                uint64_t seed) {
  std::vector<WorkerId> alive(kCluster);
  std::iota(alive.begin(), alive.end(), 0U);
  Probes probes(probe, seed);
  DriftJudge judge;
  Forecast forecast;
  double now = 0.0;
  for (Step step = 0; step < kSteps; ++step) {
    const Recorded& recorded = steps[step];
    if (forecaster.ready(alive)) forecaster.forecast(step, alive, forecast);
    if (step >= kSteps - kJudged) judge.judge(recorded, forecast);
    probes.step_closed(step, now, recorded.times, recorded.close);
    now += recorded.close.elapsed;
    forecaster.learn(observed_times(step, recorded.times, recorded.close));
    for (const LateArrival& late : probes.finished_by(now)) {
      forecaster.learn_late(late.step, late.worker, late.run_time);
    }
  }
  return judge.means();
}

// The score of a forecaster that knows the true distribution.
Measures follow_truth(const Run& run, const std::vector<Recorded>& steps) {
  DriftJudge judge;
  Forecast forecast;
  forecast.resize(128, kCluster);
  for (Step step = kSteps - kJudged; step < kSteps; ++step) {
    sample_truth(run, step, kTruth + 1, forecast);
    judge.judge(steps[step], forecast);
  }
  return judge.means();
}

using Weights = std::shared_ptr<const ModelWeights>;

// The inputs for making forecasters.
struct Given {
  uint64_t seed = 1;
  const FitFunction& fit;
  const std::vector<Recorded>& steps;
  Weights workers = nullptr;  // fitted on demand to the steps without censoring
  Weights shared = nullptr;

  Weights fitted(Emission emission) {
    Weights& weights = emission == Emission::kShared ? shared : workers;
    if (weights) return weights;
    std::vector<StepTimes> record;
    for (Step step = 0; step < kFull; ++step) {
      record.push_back(observed_times(step, steps[step].times, steps[step].close));
    }
    FitRequest request;
    request.shape = default_shape(emission, kCluster);
    request.history = std::make_shared<History>(history_of(record, seed));
    request.settings.seed = seed;
    if (emission == Emission::kWorkers) request.settings.foresight = 0.0;  // as published
    Result<FitOutcome> outcome = fit(request, {});
    DROVER_CHECK(outcome.ok());
    return weights = std::make_shared<ModelWeights>(std::move(outcome).value().weights);
  }
};

// With `once`, the model is fitted only to the steps without censoring.
std::unique_ptr<Forecaster> published(Given& given, bool once, Imputing imputing) {
  PublishedSettings settings;
  settings.seed = given.seed;
  settings.fitting.emission = Emission::kWorkers;
  settings.fitting.first_fit = kFull;
  settings.imputing = imputing;
  if (once) settings.model = given.fitted(Emission::kWorkers);
  if (!once) settings.fitter = std::make_unique<SteppedFitter>(given.fit, kFitTakes);
  return make_published(std::move(settings));
}

std::unique_ptr<Forecaster> ours(Given& given, bool once) {
  BayesSettings settings;
  settings.seed = given.seed;
  if (once) settings.model = given.fitted(Emission::kShared);
  if (!once) settings.fitter = std::make_unique<SteppedFitter>(given.fit, kFitTakes);
  return make_bayes(std::move(settings));
}

struct Variant {
  std::string_view name;
  std::unique_ptr<Forecaster> (*make)(Given&);
};
constexpr std::array kVariants = {
    Variant{"naive", [](Given& given) { return published(given, true, Imputing::kBound); }},
    Variant{"naive, refitted",
            [](Given& given) { return published(given, false, Imputing::kBound); }},
    Variant{"published", [](Given& given) { return published(given, true, Imputing::kTruncated); }},
    Variant{"published, refitted",
            [](Given& given) { return published(given, false, Imputing::kTruncated); }},
    Variant{"ours, fitted once", [](Given& given) { return ours(given, true); }},
    Variant{"ours", [](Given& given) { return ours(given, false); }},
    Variant{"ecdf", [](Given& given) { return make_ecdf({.seed = given.seed}); }},
    Variant{"ewma", [](Given& given) { return make_ewma({.seed = given.seed}); }},
};

void print_json(const Cluster& cluster, std::string_view name, double probe, uint64_t seed,
                const Measures& measures) {
  fmt::print(R"({{"cluster":"{}","forecaster":"{}","probe":{},"seed":{})", cluster.name, name,
             probe, seed);
  for (size_t i = 0; i < kMeasures; ++i) {
    if (std::isnan(measures[i])) {
      fmt::print(R"(,"{}":null)", kNames[i]);
    } else {
      fmt::print(R"(,"{}":{:.5f})", kNames[i], measures[i]);
    }
  }
  fmt::print("}}\n");
}

// Mean (minimum .. maximum) of each measure over the seeds.
void print_row(std::string_view name, std::string_view probe, const std::vector<Measures>& seeds) {
  fmt::print("{:<20} {:>4}", name, probe);
  for (size_t i = 0; i < kMeasures; ++i) {
    std::vector<double> values;
    for (const Measures& each : seeds) {
      if (!std::isnan(each[i])) values.push_back(i >= kInside ? 100.0 * each[i] : each[i]);
    }
    std::sort(values.begin(), values.end());
    const int digits = i >= kInside ? 1 : 2;
    fmt::print("  {:>21}",
               values.empty() ? "-"
                              : fmt::format("{:.{}f} ({:.{}f} .. {:.{}f})", moments(values).mean,
                                            digits, values.front(), digits, values.back(), digits));
  }
  fmt::print("\n");
}

struct Wanted {
  uint64_t seeds = 5;
  std::string_view cluster;     // empty: all
  std::string_view forecaster;  // empty: all
  bool json = false;
};

void measure(const Cluster& cluster, const Wanted& wanted, const FitFunction& fit) {
  constexpr std::array kProbes = {0.0, 0.01, 0.02, 0.05};
  std::vector<Measures> truth;
  std::array<std::array<std::vector<Measures>, kProbes.size()>, kVariants.size()> found;
  for (uint64_t seed = 1; seed <= wanted.seeds; ++seed) {
    const Run run(cluster, seed);
    const std::vector<Recorded> steps = record(run);
    truth.push_back(follow_truth(run, steps));
    if (wanted.json) print_json(cluster, "truth", 0.0, seed, truth.back());
    Given given{seed, fit, steps};
    for (size_t v = 0; v < kVariants.size(); ++v) {
      if (!wanted.forecaster.empty() && kVariants[v].name != wanted.forecaster) continue;
      for (size_t p = 0; p < kProbes.size(); ++p) {
        const std::unique_ptr<Forecaster> forecaster = kVariants[v].make(given);
        found[v][p].push_back(follow(steps, *forecaster, kProbes[p], seed));
        if (wanted.json) {
          print_json(cluster, kVariants[v].name, kProbes[p], seed, found[v][p].back());
        }
      }
    }
  }
  if (wanted.json) return;
  fmt::print("\n{}, mean (least .. most) of {} seeds\n{:<20} {:>4}", cluster.name, wanted.seeds,
             "forecaster", "");
  for (const std::string_view heading : {"bias", "error", "spread ratio", "inside, %", "lost, %"}) {
    fmt::print("  {:>21}", heading);
  }
  fmt::print("\n");
  print_row("the truth", "", truth);
  for (size_t v = 0; v < kVariants.size(); ++v) {
    for (size_t p = 0; p < kProbes.size() && !found[v][p].empty(); ++p) {
      print_row(kVariants[v].name, fmt::format("{:.0f} %", 100.0 * kProbes[p]), found[v][p]);
    }
  }
}

}  // namespace
}  // namespace drover

int main(int count, char** words) {
  drover::Wanted wanted;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const bool more = i + 1 < count;
    if (word == "--json") {
      wanted.json = true;
    } else if (word == "--seeds" && more) {
      wanted.seeds = std::strtoull(words[++i], nullptr, 10);
    } else if (word == "--cluster" && more) {
      wanted.cluster = words[++i];
    } else if (word == "--forecaster" && more) {
      wanted.forecaster = words[++i];
    } else {
      fmt::print(
          stderr,
          "drift: unknown argument '{}'. Usage: drift [--seeds N] [--cluster NAME] [--forecaster "
          "NAME] [--json]\n",
          word);
      return 2;
    }
  }
  const drover::Result<drover::FitFunction> fit = drover::load_fit_function();
  if (!fit.ok()) {
    fmt::print(stderr, "{}\n", fit.error().message);
    return 1;
  }
  for (const drover::Cluster& cluster : drover::kClusters) {
    if (!wanted.cluster.empty() && wanted.cluster != cluster.name) continue;
    drover::measure(cluster, wanted, fit.value());
    std::fflush(stdout);
  }
}

// How far forecasts of workers that are always cut drift from the truth, on simulated clusters
// whose truth is known: what stands in for run-times that nobody saw, and what it buys to let a
// share of those cut finish after all (probes).
//
// Everybody is waited for in 60 steps; in the 200 after them every step ends with the first 70 % of
// the gradients, whatever is forecast, so that all forecasters see the same. The last 20 are
// judged.
//   drift [--seeds N] [--json]
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "core/chance.h"
#include "core/check.h"
#include "fit/fit_module.h"
#include "forecast/forecasters.h"
#include "forecast/learned/impute.h"
#include "forecast/learned/stepped_fitter.h"
#include "forecast/normal.h"
#include "forecast/sort_rows.h"
#include "policy/objective.h"
#include "sim/what_was_seen.h"

namespace drover {
namespace {

constexpr uint32_t kWorkers = 40;
constexpr uint32_t kSlow = 10;  // the first ones
constexpr uint32_t kNode = 4;   // workers
constexpr uint32_t kCutoff = 28;
constexpr Step kFull = 60;
constexpr Step kSteps = 260;
constexpr Step kJudged = 20;       // the last; and who was mostly cut is told by so many before
constexpr uint32_t kTruth = 1000;  // samples of what could have happened in a step
constexpr double kSpread = 0.1;    // of a worker's log time
constexpr Step kFitTakes = 20;     // steps, as in replays

struct Cluster {
  std::string_view name;
  double from = 0.0;  // how many times slower the slow ones are while all are waited for,
  double to = 0.0;    // and when the judged steps begin; on the log scale evenly between
  bool regimes = false;
};
constexpr std::array kClusters = {
    Cluster{"steady", 1.5, 1.5},
    Cluster{"recovering", 2.0, 1.25},
    Cluster{"worsening", 1.5, 3.0},
    Cluster{"regimes", 1.0, 1.0, true},
};

// One run of a cluster. Sample 0 is what happened; the others are what could have, given all that
// had happened before the step.
class Run {
 public:
  Run(const Cluster& cluster, uint64_t seed) : cluster_(cluster), seed_(seed) {
    constexpr double kFrom = 0.25;  // share of nodes that begin slow, as in the long run
    for (uint32_t node = 0; node < kWorkers / kNode; ++node) {
      ill_.push_back({chance(0, node, 0, 2) < kFrom});
      for (Step step = 1; step < kSteps; ++step) {
        ill_[node].push_back(is_ill(step, node, 0));
      }
    }
  }

  double time(Step step, WorkerId worker, uint64_t sample) const {
    const double own = 0.05 * normal_quantile(chance(0, worker, 0, 3));
    const double noise = kSpread * normal_quantile(chance(step, worker, sample, 1));
    return std::exp(own + slowness(step, worker, sample) + noise);
  }

 private:
  double chance(Step step, uint64_t who, uint64_t sample, uint64_t use) const {
    // Never 0, which has no quantile.
    return unit_interval(
        draw({seed_, static_cast<uint64_t>(Purpose::kRunTimes), step, who, sample, use}) |
        (uint64_t{1} << 11));
  }
  bool is_ill(Step step, uint32_t node, uint64_t sample) const {
    constexpr double kFallsIll = 1.0 / 60.0;
    constexpr double kRecovers = 1.0 / 20.0;
    if (step == 0) return ill_[node][0];
    const double turn = chance(step, node, sample, 2);
    return ill_[node][step - 1] ? turn >= kRecovers : turn < kFallsIll;
  }
  double slowness(Step step, WorkerId worker, uint64_t sample) const {
    if (cluster_.regimes) return is_ill(step, worker / kNode, sample) ? std::log(3.0) : 0.0;
    if (worker >= kSlow) return 0.0;
    const double done = (static_cast<double>(step) - kFull) / (kSteps - kJudged - kFull);
    const double share = std::clamp(done, 0.0, 1.0);
    return (1.0 - share) * std::log(cluster_.from) + share * std::log(cluster_.to);
  }

  const Cluster& cluster_;
  const uint64_t seed_;
  std::vector<std::vector<bool>> ill_;  // by node and step
};

struct Moments {
  double mean = 0.0;
  double deviation = 0.0;
};
Moments moments(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / count)};
}

// The log times of one worker, ascending.
std::vector<double> log_times(const Forecast& forecast, WorkerId worker) {
  std::vector<double> logs;
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    logs.push_back(std::log(double{forecast.row(k)[worker]}));
  }
  std::sort(logs.begin(), logs.end());
  return logs;
}

double expected_throughput(const Forecast& sorted, uint32_t cutoff) {
  double sum = 0.0;
  for (uint32_t k = 0; k < sorted.samples; ++k) sum += cutoff / double{sorted.row(k)[cutoff - 1]};
  return sum / sorted.samples;
}

// A step of a recording; the truth only where it is judged.
struct Recorded {
  std::vector<double> times;
  StepClose close;
  Forecast truth;
  Forecast sorted;  // the same
  std::vector<WorkerId> mostly_cut;
};

void sample_truth(const Run& run, Step step, uint64_t first, Forecast& out) {
  for (uint32_t k = 0; k < out.samples; ++k) {
    for (WorkerId worker = 0; worker < kWorkers; ++worker) {
      out.row(k)[worker] = static_cast<float>(run.time(step, worker, first + k));
    }
  }
}

std::vector<Recorded> record(const Run& run) {
  std::vector<Recorded> steps(kSteps);
  for (Step step = 0; step < kSteps; ++step) {
    Recorded& now = steps[step];
    for (WorkerId worker = 0; worker < kWorkers; ++worker) {
      now.times.push_back(run.time(step, worker, 0));
    }
    std::vector<double> sorted = now.times;
    std::sort(sorted.begin(), sorted.end());
    const uint32_t cutoff = step < kFull ? kWorkers : kCutoff;
    now.close = {cutoff, sorted[cutoff - 1]};
    if (step < kSteps - kJudged) continue;
    now.truth.resize(kTruth, kWorkers);
    sample_truth(run, step, 1, now.truth);
    now.sorted = now.truth;
    sort_rows(now.sorted);
    for (WorkerId worker = 0; worker < kWorkers; ++worker) {
      const auto cut = std::count_if(&steps[step - kJudged], &now, [&](const Recorded& before) {
        return before.times[worker] > before.close.elapsed;
      });
      if (cut > ptrdiff_t{kJudged / 2}) now.mostly_cut.push_back(worker);
    }
  }
  return steps;
}

// Means over the judged steps and, but for the last, over those who were mostly cut.
enum Measure : size_t { kBias, kError, kSpreadRatio, kInside, kLost, kMeasures };
using Measures = std::array<double, kMeasures>;
constexpr std::array<std::string_view, kMeasures> kNames = {"bias", "error", "spread", "inside",
                                                            "lost"};

class Judge {
 public:
  void judge(const Recorded& step, const Forecast& forecast) {
    for (const WorkerId worker : step.mostly_cut) {
      const std::vector<double> foretold = log_times(forecast, worker);
      const std::vector<double> truth = log_times(step.truth, worker);
      const Moments ours = moments(foretold);
      const Moments real = moments(truth);
      const auto at = [&](double p) {
        return foretold[static_cast<size_t>(p * static_cast<double>(foretold.size() - 1) + 0.5)];
      };
      const auto inside = std::upper_bound(truth.begin(), truth.end(), at(0.95)) -
                          std::lower_bound(truth.begin(), truth.end(), at(0.05));
      sums_[kBias] += ours.mean - real.mean;
      sums_[kError] += std::abs(ours.mean - real.mean);
      sums_[kSpreadRatio] += ours.deviation / real.deviation;
      sums_[kInside] += static_cast<double>(inside) / kTruth;
      ++workers_;
    }
    Forecast sorted = forecast;
    sort_rows(sorted);
    const double best = search_.best(step.sorted, {}).value;
    sums_[kLost] += 1.0 - expected_throughput(step.sorted, search_.best(sorted, {}).cutoff) / best;
    ++steps_;
  }
  // NaN where nobody was mostly cut.
  Measures means() const {
    Measures means = sums_;
    for (size_t i = 0; i < kMeasures; ++i) means[i] /= i == kLost ? steps_ : workers_;
    return means;
  }

 private:
  Measures sums_{};
  double workers_ = 0.0;
  double steps_ = 0.0;
  CutoffSearch search_;
};

Measures follow(const std::vector<Recorded>& steps, Forecaster& forecaster, double probe,
                uint64_t seed) {
  std::vector<WorkerId> alive(kWorkers);
  std::iota(alive.begin(), alive.end(), 0U);
  Probes probes(probe, seed);
  Judge judge;
  Forecast forecast;
  double now = 0.0;
  for (Step step = 0; step < kSteps; ++step) {
    const Recorded& recorded = steps[step];
    if (forecaster.ready(alive)) forecaster.forecast(step, alive, forecast);
    if (step >= kSteps - kJudged) judge.judge(recorded, forecast);
    probes.step_closed(step, now, recorded.times, recorded.close);
    now += recorded.close.elapsed;
    forecaster.learn(what_was_seen(step, recorded.times, recorded.close));
    for (const LateArrival& late : probes.finished_by(now)) {
      forecaster.learn_late(late.step, late.worker, late.run_time);
    }
  }
  return judge.means();
}

// What a forecaster that knows everything but the future would score.
Measures follow_truth(const Run& run, const std::vector<Recorded>& steps) {
  Judge judge;
  Forecast forecast;
  forecast.resize(128, kWorkers);
  for (Step step = kSteps - kJudged; step < kSteps; ++step) {
    sample_truth(run, step, kTruth + 1, forecast);
    judge.judge(steps[step], forecast);
  }
  return judge.means();
}

using Weights = std::shared_ptr<const ModelWeights>;
struct Given {
  uint64_t seed = 1;
  FitFunction fit;
  Weights workers;  // fitted to the steps in which everybody was waited for
  Weights shared;
};

Weights fit_to_full_steps(const std::vector<Recorded>& steps, Emission emission, uint64_t seed,
                          const FitFunction& fit) {
  std::vector<StepTimes> record;
  for (Step step = 0; step < kFull; ++step) {
    record.push_back(what_was_seen(step, steps[step].times, steps[step].close));
  }
  FitRequest request;
  request.shape = default_shape(emission, kWorkers);
  request.history = std::make_shared<History>(history_of(record, seed));
  request.settings.seed = seed;
  if (emission == Emission::kWorkers) request.settings.foresight = 0.0;  // as published
  Result<FitOutcome> outcome = fit(request, {});
  DROVER_CHECK(outcome.ok());
  return std::make_shared<ModelWeights>(std::move(outcome).value().weights);
}

std::unique_ptr<Forecaster> published(const Given& given, Weights model, Imputing imputing) {
  BayesSettings settings;
  settings.seed = given.seed;
  settings.published = true;
  settings.emission = Emission::kWorkers;
  settings.imputing = imputing;
  settings.model = std::move(model);
  if (!settings.model) {
    settings.first_fit = kFull;
    settings.fitter = std::make_unique<SteppedFitter>(given.fit, kFitTakes);
  }
  return make_bayes(std::move(settings));
}

std::unique_ptr<Forecaster> ours(const Given& given, Weights model) {
  BayesSettings settings;
  settings.seed = given.seed;
  settings.model = std::move(model);
  if (!settings.model) settings.fitter = std::make_unique<SteppedFitter>(given.fit, kFitTakes);
  return make_bayes(std::move(settings));
}

struct Variant {
  std::string_view name;
  std::function<std::unique_ptr<Forecaster>(const Given&)> make;
};
const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"naive", [](const Given& g) { return published(g, g.workers, Imputing::kBound); }},
      {"published", [](const Given& g) { return published(g, g.workers, Imputing::kTruncated); }},
      {"published, refitted",
       [](const Given& g) { return published(g, nullptr, Imputing::kTruncated); }},
      {"shared alone", [](const Given& g) { return published(g, g.shared, Imputing::kTruncated); }},
      {"ours, fitted once", [](const Given& g) { return ours(g, g.shared); }},
      {"ours", [](const Given& g) { return ours(g, nullptr); }},
      {"ecdf", [](const Given& g) { return make_ecdf({.seed = g.seed}); }},
      {"ewma", [](const Given& g) { return make_ewma({.seed = g.seed}); }},
  };
  return all;
}

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

// Mean (least .. most) of each measure over the seeds.
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

void measure(const Cluster& cluster, uint64_t seeds, bool json, const FitFunction& fit) {
  constexpr std::array kProbes = {0.0, 0.01, 0.02, 0.05};
  std::vector<Measures> truth;
  std::vector<std::array<std::vector<Measures>, kProbes.size()>> found(variants().size());
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Run run(cluster, seed);
    const std::vector<Recorded> steps = record(run);
    truth.push_back(follow_truth(run, steps));
    if (json) print_json(cluster, "truth", 0.0, seed, truth.back());
    const Given given{seed, fit, fit_to_full_steps(steps, Emission::kWorkers, seed, fit),
                      fit_to_full_steps(steps, Emission::kShared, seed, fit)};
    for (size_t v = 0; v < variants().size(); ++v) {
      for (size_t p = 0; p < kProbes.size(); ++p) {
        const std::unique_ptr<Forecaster> forecaster = variants()[v].make(given);
        found[v][p].push_back(follow(steps, *forecaster, kProbes[p], seed));
        if (json) print_json(cluster, variants()[v].name, kProbes[p], seed, found[v][p].back());
      }
    }
    std::fflush(stdout);
  }
  if (json) return;
  fmt::print("\n{}, mean (least .. most) of {} seeds\n{:<20} {:>4}", cluster.name, seeds,
             "forecaster", "");
  for (const std::string_view heading : {"bias", "error", "spread ratio", "inside, %", "lost, %"}) {
    fmt::print("  {:>21}", heading);
  }
  fmt::print("\n");
  print_row("the truth", "", truth);
  for (size_t v = 0; v < variants().size(); ++v) {
    for (size_t p = 0; p < kProbes.size(); ++p) {
      print_row(variants()[v].name, fmt::format("{:.0f} %", 100.0 * kProbes[p]), found[v][p]);
    }
  }
  std::fflush(stdout);
}

}  // namespace
}  // namespace drover

int main(int count, char** words) {
  uint64_t seeds = 5;
  bool json = false;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--json") {
      json = true;
    } else if (word == "--seeds" && i + 1 < count) {
      seeds = std::strtoull(words[++i], nullptr, 10);
    } else {
      fmt::print(stderr, "drift does not know '{}'. Use: drift [--seeds N] [--json]\n", word);
      return 2;
    }
  }
  const drover::Result<drover::FitFunction> fit = drover::load_fit_function();
  if (!fit.ok()) {
    fmt::print(stderr, "{}\n", fit.error().message);
    return 1;
  }
  for (const drover::Cluster& cluster : drover::kClusters) {
    drover::measure(cluster, seeds, json, fit.value());
  }
}

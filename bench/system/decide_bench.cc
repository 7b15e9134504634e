// system_bench decide: the duration of a decision with a learned model on this machine.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "cli/run_report.h"
#include "core/quantile.h"
#include "core/random_draw.h"
#include "forecast/learned/learned_model.h"
#include "forecast/learned/random_model.h"
#include "forecast/normal.h"
#include "forecast/sampling.h"
#include "forecast/sort_rows.h"
#include "node/clock.h"
#include "policy/objective.h"
#include "system/benches.h"
#include "system/rounds.h"

namespace drover {
namespace {

constexpr uint32_t kMostWorkers = 100'000;
constexpr uint32_t kMostSamples = 10'000;
constexpr uint32_t kMostRepeat = 1'000'000;
constexpr uint64_t kMostTimes = 100'000'000;  // of a forecast: 400 MB
// Different rows, so that caches and branch predictors do not adapt to one of them.
constexpr uint32_t kRows = 32;

Result<std::vector<uint32_t>> parse_counts(const std::string& list) {
  std::vector<uint32_t> counts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    uint32_t count = 0;
    const char* const stop = list.data() + end;
    const auto [read, error] = std::from_chars(list.data() + begin, stop, count);
    if (error != std::errc() || read != stop || count == 0 || count > kMostWorkers) {
      return invalid_input(
          fmt::format("--workers: '{}' is not a number of workers from 1 to {}; write for example "
                      "--workers 16,158",
                      list.substr(begin, end - begin), kMostWorkers));
    }
    counts.push_back(count);
    begin = end + 1;
  }
  return counts;
}

// Run-times like those of a shared cluster: each worker has its own speed, all are slower in
// some steps, some are very late occasionally, and the slowest are censored.
std::vector<PastTime> synthetic_row(uint32_t workers, uint64_t step) {
  const auto unit_draw = [&](uint64_t worker, uint64_t use) {
    return unit_interval(draw({step, worker, use}));
  };
  const double busy = step % 8 < 3 ? 0.3 : 0.0;
  const float cut = static_cast<float>(1.0 + busy + 0.6);
  std::vector<PastTime> row;
  for (uint32_t i = 0; i < workers; ++i) {
    const double own = 0.3 * unit_interval(draw({i, 1}));
    const double noise = 0.1 * normal_quantile(0.001 + 0.998 * unit_draw(i, 2));
    const double late = unit_draw(i, 3) < 0.03 ? 1.0 : 0.0;
    const auto log_time = static_cast<float>(1.0 + busy + own + noise + late);
    row.push_back(log_time > cut ? PastTime{log_time, cut, Known::kLonger}
                                 : PastTime{log_time, log_time, Known::kArrived});
  }
  return row;
}

struct Timing {
  uint32_t workers = 0;
  uint32_t samples = 0;
  // Microseconds.
  double p50 = 0.0;
  double p99 = 0.0;
  // Medians of the parts.
  double learn = 0.0;
  double forecast = 0.0;
  double sort = 0.0;
  double search = 0.0;
};

class DecideBench {
 public:
  DecideBench(Emission emission, uint32_t workers, uint32_t samples)
      : samples_(samples > 0 ? samples : learned_samples(workers)),
        model_(std::make_shared<ModelWeights>(random_model(default_shape(emission, workers), 1)),
               1),
        alive_(workers) {
    std::iota(alive_.begin(), alive_.end(), 0U);
    for (uint32_t i = 0; i < kRows; ++i) rows_.push_back(synthetic_row(workers, i));
  }

  Timing run(uint32_t repeat) {
    for (uint32_t i = 0; i < kRows; ++i) decide();  // fills the window and the caches
    for (std::vector<double>& times : parts_) times.clear();
    totals_.clear();
    for (uint32_t i = 0; i < repeat; ++i) decide();
    return {.workers = static_cast<uint32_t>(alive_.size()),
            .samples = samples_,
            .p50 = quantile(totals_, 0.5),
            .p99 = quantile(totals_, 0.99),
            .learn = quantile(parts_[0], 0.5),
            .forecast = quantile(parts_[1], 0.5),
            .sort = quantile(parts_[2], 0.5),
            .search = quantile(parts_[3], 0.5)};
  }

 private:
  // The work of a run between the end of a step and the next step's cutoff.
  void decide() {
    TimePoint last = clock_now();
    const TimePoint begin = last;
    const auto lap = [&](size_t part) {
      const TimePoint now = clock_now();
      parts_[part].push_back(seconds(now - last) * 1e6);
      last = now;
    };
    model_.learn(step_, rows_[step_ % kRows]);
    lap(0);
    model_.forecast(++step_, alive_, samples_, forecast_);
    lap(1);
    sorter_.sort(forecast_);
    lap(2);
    total_value_ += search_.best(forecast_, {.overhead = 0.1}).value;
    lap(3);
    totals_.push_back(seconds(last - begin) * 1e6);
  }

  const uint32_t samples_;
  LearnedModel model_;
  std::vector<WorkerId> alive_;
  std::vector<std::vector<PastTime>> rows_;
  Step step_ = 0;
  Forecast forecast_;
  RowSorter sorter_;
  CutoffSearch search_;
  double total_value_ = 0.0;  // uses the results, so that the compiler keeps the work
  std::array<std::vector<double>, 4> parts_;
  std::vector<double> totals_;
};

Status check_options(const BenchOptions& options, uint32_t most_workers) {
  if (options.samples > kMostSamples) {
    return invalid_input(fmt::format("--samples: {} are too many; up to {} are possible",
                                     options.samples, kMostSamples));
  }
  if (uint64_t{options.samples} * most_workers > kMostTimes) {
    return invalid_input(fmt::format(
        "--samples: {} samples of {} workers would take gigabytes; take fewer of either",
        options.samples, most_workers));
  }
  if (options.repeat == 0 || options.repeat > kMostRepeat) {
    return invalid_input(
        fmt::format("--repeat: must be from 1 to {}, not {}", kMostRepeat, options.repeat));
  }
  return done();
}

void print(const Timing& timing, std::string_view emission, bool json) {
  if (!json) {
    fmt::print("{:>8} {:>8} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f}\n",
               timing.workers, timing.samples, timing.p50, timing.p99, timing.learn,
               timing.forecast, timing.sort, timing.search);
    return;
  }
  const nlohmann::ordered_json line = {
      {"workers", timing.workers},      {"samples", timing.samples}, {"emission", emission},
      {"p50_us", timing.p50},           {"p99_us", timing.p99},      {"learn_us", timing.learn},
      {"forecast_us", timing.forecast}, {"sort_us", timing.sort},    {"search_us", timing.search}};
  fmt::print("{}\n", line.dump());
}

}  // namespace

int bench_decide_command(const BenchOptions& options) {
  const Result<std::vector<uint32_t>> counts = parse_counts(options.workers);
  if (!counts) return fail(counts.error(), kExitUsage);
  const Result<Emission> emission = parse_emission(options.emission);
  if (!emission) {
    return fail(invalid_input("--emission: " + emission.error().message), kExitUsage);
  }
  const uint32_t most_workers = *std::max_element(counts.value().begin(), counts.value().end());
  if (const Status status = check_options(options, most_workers); !status)
    return fail(status.error(), kExitUsage);
  if (!options.json) {
    fmt::print("A decision with the learned model '{}', in microseconds:\n", options.emission);
    fmt::print("{:>8} {:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "workers", "samples",
               "median", "99 %", "learn", "forecast", "sort", "search");
  }
  for (const uint32_t workers : counts.value()) {
    DecideBench bench(emission.value(), workers, options.samples);
    print(bench.run(options.repeat), options.emission, options.json);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace drover

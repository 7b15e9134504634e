// bench_policies: how policies compare on made-up clusters and on recordings.
//
//   bench_policies [--policy A,B,...] [--regimes NAME,...|even|odd|none] [--sizes 8,32,128]
//                  [--seeds 1,2,3] [--traces FOLDER] [--live] [--warmup N] [--fit] [--jobs N]
//                  [--csv OUT.csv]
//
// Every policy replays every trace. Numbers are shares of the bound (sim/oracle_bounds.h) in
// percent, without the warm-up; of a regime the mean over sizes and seeds, with the half width of
// its 95 % interval over seeds. --csv writes one row for each trace and policy.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "policies/fitters.h"
#include "policies/regimes.h"
#include "sim/oracle_bounds.h"
#include "sim/replay.h"

namespace drover {
namespace {

struct Options {
  std::vector<std::string> policies = {"sync",   "static",      "static:0.8", "mad",
                                       "bandit", "dropcompute", "ecdf",       "ewma",
                                       "bayes",  "bayes+live"};
  std::vector<std::string> regimes = {"all"};
  std::vector<uint32_t> sizes = {8, 32, 128};
  std::vector<uint64_t> seeds = {1, 2, 3};
  std::string traces;
  std::string csv;
  bool live = false;
  bool fit = false;
  Step warmup = 20;
  unsigned jobs = 1;
};

struct Task {
  std::string regime;  // or the name of a recording
  uint32_t size = 0;
  uint64_t seed = 0;
  bool recorded = false;
  Trace trace;
};

struct Row {
  const Task* task = nullptr;
  std::string policy;
  double of_bound = 0.0;
  double of_oracle = 0.0;
  double whole = 0.0;  // of the bound over all steps, the warm-up counted
  double decision_ms = 0.0;
};

TimePoint now() {
  return TimePoint(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

bool chosen(const Options& options, size_t index, std::string_view name) {
  for (const std::string& each : options.regimes) {
    if (each == "all" || each == name) return true;
    if (each == "even" && index % 2 == 0) return true;
    if (each == "odd" && index % 2 == 1) return true;
  }
  return false;
}

Result<std::vector<Task>> tasks_of(const Options& options) {
  std::vector<Task> tasks;
  for (size_t i = 0; i < regimes().size(); ++i) {
    const Regime& regime = regimes()[i];
    if (!chosen(options, i, regime.name)) continue;
    for (const uint32_t size : options.sizes) {
      for (const uint64_t seed : options.seeds)
        tasks.push_back(
            {std::string(regime.name), size, seed, false, make_regime(regime, size, seed)});
    }
  }
  if (options.traces.empty()) return tasks;
  std::vector<std::filesystem::path> files;
  for (const auto& each : std::filesystem::directory_iterator(options.traces)) {
    if (each.path().extension() == ".csv" || each.path().extension() == ".npy")
      files.push_back(each.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    Result<Trace> trace = read_trace(file.string());
    if (!trace) return trace.error();
    Task task{file.stem().string(), 0, 1, true, std::move(trace).value()};
    task.size = static_cast<uint32_t>(task.trace.workers.size());
    tasks.push_back(std::move(task));
  }
  return tasks;
}

struct Bounds {
  OracleBounds measured;
  OracleBounds whole;
  OracleCloses oracle;
};

Result<Row> run_one(const Options& options, const Task& task, const Bounds& bounds,
                    const std::string& policy) {
  const Trace& trace = task.trace;
  std::string text = policy;
  const bool live = options.live || policy.ends_with("+live");
  if (policy.ends_with("+live")) text.resize(text.size() - 5);
  PolicySettings settings{
      .warmup = options.warmup, .seed = task.seed, .live = live, .foresight = foresight_of(trace)};
  if (options.fit) settings.fitter = bench_fitters();
  auto made = make_policy(text, settings);
  if (!made) return made.error();
  Decider decider(std::move(made).value(), {});
  double gradients = 0.0;
  double time = 0.0;
  const auto listen = [&](const ReplayedStep& step) {
    gradients += step.close.contributors;
    time += step.close.elapsed;
    return done();
  };
  const auto result =
      replay(trace, bounds.oracle, decider,
             {.warmup = std::min<Step>(20, trace.steps() - 1), .seed = task.seed}, now, listen);
  if (!result) return result.error();
  return Row{&task,
             policy,
             result.value().throughput_total / bounds.measured.bound,
             result.value().oracle_share_total,
             gradients / time / bounds.whole.bound,
             1e3 * seconds(result.value().decision_p50)};
}

// The best constant rules, chosen with all steps known, as rows beside the policies.
std::vector<Row> constant_rows(const Task& task, const Bounds& bounds) {
  const OracleBounds& all = bounds.measured;
  return {{&task, "best-cutoff", all.by_cutoff / all.bound, 0.0,
           bounds.whole.by_cutoff / bounds.whole.bound, 0.0},
          {&task, "best-limit", all.by_time_limit / all.bound, 0.0,
           bounds.whole.by_time_limit / bounds.whole.bound, 0.0}};
}

Result<std::vector<Row>> run_all(const Options& options, const std::vector<Task>& tasks) {
  std::vector<std::vector<Row>> rows(tasks.size());
  std::atomic<size_t> next = 0;
  std::mutex guard;
  std::optional<Error> trouble;
  const auto work = [&] {
    for (size_t i = next++; i < tasks.size(); i = next++) {
      const Step first = std::min<Step>(20, tasks[i].trace.steps() - 1);
      const Bounds bounds{oracle_bounds(tasks[i].trace, 0.0, first),
                          oracle_bounds(tasks[i].trace, 0.0, 0), oracle_of(tasks[i].trace, 0.0)};
      for (const std::string& policy : options.policies) {
        Result<Row> row = run_one(options, tasks[i], bounds, policy);
        if (row) {
          rows[i].push_back(std::move(row).value());
          continue;
        }
        const std::lock_guard lock(guard);
        trouble = row.error();
        return;
      }
      for (Row& row : constant_rows(tasks[i], bounds)) rows[i].push_back(std::move(row));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < options.jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (trouble) return *trouble;
  std::vector<Row> all;
  for (const std::vector<Row>& each : rows) all.insert(all.end(), each.begin(), each.end());
  return all;
}

struct Summary {
  double mean = 0.0;
  double half_width = 0.0;
};

// Over seeds: sizes of a seed are averaged first.
Summary summarise(const std::map<uint64_t, std::vector<double>>& by_seed) {
  constexpr std::array kStudent = {0.0, 12.71, 4.30, 3.18, 2.78, 2.57};
  std::vector<double> means;
  for (const auto& [seed, values] : by_seed) {
    double sum = 0.0;
    for (const double value : values) sum += value;
    means.push_back(sum / static_cast<double>(values.size()));
  }
  Summary summary;
  const auto count = static_cast<double>(means.size());
  for (const double each : means) summary.mean += each / count;
  if (means.size() < 2) return summary;
  double squares = 0.0;
  for (const double each : means) squares += (each - summary.mean) * (each - summary.mean);
  const double t = means.size() - 1 < kStudent.size() ? kStudent[means.size() - 1] : 2.0;
  summary.half_width = t * std::sqrt(squares / (count - 1.0) / count);
  return summary;
}

void print_table(const std::vector<Row>& rows, bool recorded) {
  std::vector<std::string> names;
  std::vector<std::string> policies;
  std::map<std::pair<std::string, std::string>, std::map<uint64_t, std::vector<double>>> cells;
  std::map<std::string, std::pair<double, double>> logs;    // by policy: sum, count
  std::map<std::string, std::pair<double, double>> wholes;  // the same, the warm-up counted
  std::map<std::string, std::vector<double>> times;
  for (const Row& row : rows) {
    if (row.task->recorded != recorded) continue;
    const std::string& name = row.task->regime;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (std::find(policies.begin(), policies.end(), row.policy) == policies.end())
      policies.push_back(row.policy);
    cells[{name, row.policy}][row.task->seed].push_back(row.of_bound);
    auto& [sum, count] = logs[row.policy];
    sum += std::log(row.of_bound);
    count += 1.0;
    wholes[row.policy].first += std::log(row.whole);
    times[row.policy].push_back(row.decision_ms);
  }
  if (names.empty()) return;
  fmt::print("{:20}", recorded ? "recording" : "regime");
  for (const std::string& policy : policies) fmt::print(" {:>12.12}", policy);
  fmt::print("\n");
  for (const std::string& name : names) {
    fmt::print("{:20.20}", name);
    for (const std::string& policy : policies) {
      const Summary summary = summarise(cells[{name, policy}]);
      fmt::print(" {:>12}", recorded ? fmt::format("{:.2f}", 100 * summary.mean)
                                     : fmt::format("{:.2f} ±{:.1f}", 100 * summary.mean,
                                                   100 * summary.half_width));
    }
    fmt::print("\n");
  }
  const auto line = [&](const char* title, auto value) {
    fmt::print("{:20}", title);
    for (const std::string& policy : policies) fmt::print(" {:>12}", value(policy));
    fmt::print("\n");
  };
  line("geometric mean", [&](const std::string& policy) {
    return fmt::format("{:.2f}", 100 * std::exp(logs[policy].first / logs[policy].second));
  });
  line("with warm-up", [&](const std::string& policy) {
    return fmt::format("{:.2f}", 100 * std::exp(wholes[policy].first / logs[policy].second));
  });
  line("decision, ms", [&](const std::string& policy) {
    std::vector<double>& each = times[policy];
    std::nth_element(each.begin(), each.begin() + static_cast<ptrdiff_t>(each.size() / 2),
                     each.end());
    return fmt::format("{:.3f}", each[each.size() / 2]);
  });
  fmt::print("\n");
}

Status write_csv(const std::string& path, const std::vector<Row>& rows) {
  std::ofstream file(path);
  file << "kind,name,workers,seed,policy,of_bound,of_oracle,with_warmup,decision_ms\n";
  for (const Row& row : rows) {
    file << fmt::format("{},{},{},{},{},{:.5f},{:.5f},{:.5f},{:.4f}\n",
                        row.task->recorded ? "recording" : "regime", row.task->regime,
                        row.task->size, row.task->seed, row.policy, row.of_bound, row.of_oracle,
                        row.whole, row.decision_ms);
  }
  file.close();
  if (file) return done();
  return system_error(fmt::format("cannot write '{}'", path));
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Compares policies on made-up clusters and on recordings.");
  app.add_option("--policy", options.policies, "policies; NAME+live decides again inside a step")
      ->delimiter(',');
  app.add_option("--regimes", options.regimes, "names, all, even, odd or none")->delimiter(',');
  app.add_option("--sizes", options.sizes, "numbers of workers")->delimiter(',');
  app.add_option("--seeds", options.seeds, "seeds of the made-up clusters")->delimiter(',');
  app.add_option("--traces", options.traces, "folder of recordings");
  app.add_option("--csv", options.csv, "file for one row a trace and policy");
  app.add_option("--warmup", options.warmup, "warm-up steps of policies that learn");
  app.add_option("--jobs", options.jobs, "threads");
  app.add_flag("--live", options.live, "decide again inside each step");
  app.add_flag("--fit", options.fit, "let policies fit models");
  CLI11_PARSE(app, argc, argv);
  const Result<std::vector<Task>> tasks = tasks_of(options);
  if (!tasks) {
    fmt::print(stderr, "error: {}\n", tasks.error().message);
    return 1;
  }
  const Result<std::vector<Row>> rows = run_all(options, tasks.value());
  if (!rows) {
    fmt::print(stderr, "error: {}\n", rows.error().message);
    return 1;
  }
  print_table(rows.value(), false);
  print_table(rows.value(), true);
  if (options.csv.empty()) return 0;
  if (const Status status = write_csv(options.csv, rows.value()); !status) {
    fmt::print(stderr, "error: {}\n", status.error().message);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace drover

int main(int argc, char** argv) { return drover::run(argc, argv); }

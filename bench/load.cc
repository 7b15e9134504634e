// Measures the cost of very many light workers for the servers of a real or simulated run.
//
//   build/release/bin/load                                       500 workers, 1,000 steps, 2 shards
//   build/release/bin/load workers=100 steps=200 shards=4 floats=10000 transport=tcp
//   policy=static:0.9 build/release/bin/load simulate workers=10000 steps=20
//
// In a real run coordinator, shards and workers are those of `drover train`, a process each; only
// the gradient is synthetic. Measurements are between a tenth of the steps and nearly all of
// them: CPU (user and system) of each server per worker and step, and the growth of its memory.
#include "load.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "launch/launcher.h"
#include "node/clock.h"
#include "node/host.h"
#include "node/live_session.h"
#include "node/worker_node.h"

namespace drover {
namespace {

// Moves its parameters towards zero; a gradient takes about a microsecond.
class LightTask final : public Task {
 public:
  explicit LightTask(size_t floats) : layout_({{"w", floats, TensorKind::kTrained}}) {}
  const Layout& layout() const override { return layout_; }
  void initial_parameters(std::span<float> parameters) override {
    std::ranges::fill(parameters, 1.0F);
  }
  GradientReport gradient(std::span<const float> parameters, const Batch& batch,
                          std::span<float> gradient, GradientListener& listener) override {
    std::ranges::copy(parameters, gradient.begin());
    if (!listener.tensor_ready(0)) return {};
    return {.finished = true, .samples = batch.count, .loss = double{parameters[0]}};
  }
  Evaluation evaluate(std::span<const float>) override { return {}; }
  Status save(std::span<const float>, const std::string&) override { return done(); }
  std::vector<std::pair<std::string, std::string>> describe() const override { return {}; }

 private:
  const Layout layout_;
};

// The resources that a process has used so far.
struct Usage {
  double cpu_seconds = 0.0;
  double resident_mb = 0.0;
  double own_mb = 0.0;  // private part of resident_mb
};

// All zero if the process does not exist.
Usage usage_of(int64_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  Usage usage;
  std::string line;
  std::getline(std::ifstream(folder + "/stat"), line);
  // After the name, which may contain blanks, fields 14 and 15 are the 12th and 13th.
  std::istringstream fields(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0.0;
  double system = 0.0;
  fields >> user >> system;
  usage.cpu_seconds = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::ifstream memory(folder + "/smaps_rollup");
  while (std::getline(memory, line)) {
    std::istringstream words(line);
    std::string key;
    double kilobytes = 0.0;
    words >> key >> kilobytes;
    if (key == "Rss:") usage.resident_mb = kilobytes / 1024;
    if (key == "Private_Dirty:" || key == "Private_Clean:") usage.own_mb += kilobytes / 1024;
  }
  return usage;
}

struct Sample {
  Step step = 0;
  TimePoint at{};
  std::map<std::string, Usage> servers;
};

// Runs in the coordinator's process, and prints the results at the end.
class LoadView final : public RunView {
 public:
  explicit LoadView(const LoadSettings& settings) : settings_(settings) {}

  void tick() override {}
  Status on_peer(const PeerRecord& peer) override {
    (peer.peer.role == Role::kWorker ? workers_ : servers_)[name_of(peer.peer)] = peer.pid;
    return done();
  }
  Status on_decision(const DecisionRecord&) override { return done(); }
  Status on_step(const StepRecord& step, const std::vector<ArrivalRecord>&) override {
    used_ += step.contributors;
    // Servers exit right after the last step, so the last sample is earlier.
    if (step.step == settings_.steps / 10) first_ = sample(step.step);
    if (step.step == settings_.steps - 1 - settings_.steps / 20) {
      last_ = sample(step.step);
      for (const auto& [name, pid] : workers_) worker_mb_ += usage_of(pid).own_mb;
    }
    return done();
  }
  Status on_late_arrival(const ArrivalRecord&) override { return done(); }
  Status on_abandoned(const AbandonRecord&) override { return done(); }
  Status on_evaluation(const EvaluationRecord&) override { return done(); }
  Status on_event(const EventRecord& event) override {
    if (event.kind() == EventKind::kLost) ++lost_;
    return done();
  }
  Status on_end(const RunEnd& end) override {
    if (end.outcome == RunOutcome::kCompleted) print_table(end);
    return done();
  }

 private:
  Sample sample(Step step) const {
    Sample taken{.step = step, .at = clock_now(), .servers = {}};
    for (const auto& [name, pid] : servers_) taken.servers[name] = usage_of(pid);
    return taken;
  }
  double microseconds(const std::string& server) const {
    const double spent =
        last_.servers.at(server).cpu_seconds - first_.servers.at(server).cpu_seconds;
    return spent * 1e6 / static_cast<double>((last_.step - first_.step) * settings_.workers);
  }
  double steps_per_second() const {
    return static_cast<double>(last_.step - first_.step) / seconds(last_.at - first_.at);
  }
  double megabytes_of_a_worker() const {
    return worker_mb_ / static_cast<double>(std::max<size_t>(workers_.size(), 1));
  }

  void print_table(const RunEnd& end) const {
    fmt::print("{} workers, {} shards, {} steps with {} floats over {}: {:.1f} s, {:.1f} steps/s\n",
               settings_.workers, settings_.shards, settings_.steps, settings_.floats,
               settings_.transport, seconds(end.elapsed), steps_per_second());
    fmt::print("{} gradients used, {} peers lost; a worker has {:.2f} MB of its own\n\n", used_,
               lost_, megabytes_of_a_worker());
    fmt::print("{:<12} {:>28} {:>18} {:>18}\n", "", "CPU per worker and step, us",
               "MB after a tenth", "MB at the end");
    for (const auto& [name, usage] : last_.servers) {
      fmt::print("{:<12} {:>28.1f} {:>18.1f} {:>18.1f}\n", name, microseconds(name),
                 first_.servers.at(name).resident_mb, usage.resident_mb);
    }
    std::fflush(stdout);
  }

  const LoadSettings settings_;
  std::map<std::string, int64_t> servers_;
  std::map<std::string, int64_t> workers_;
  Sample first_;
  Sample last_;
  double worker_mb_ = 0.0;
  uint64_t used_ = 0;
  uint64_t lost_ = 0;
};

int run_real(const LoadSettings& settings) {
  const std::map<std::string, Transport> transports = {
      {"shm", Transport::kShm}, {"uds", Transport::kUnix}, {"tcp", Transport::kTcp}};
  std::string folder = std::filesystem::temp_directory_path() / "drover-load-XXXXXX";
  if (!transports.contains(settings.transport) || settings.steps < 20 ||
      ::mkdtemp(folder.data()) == nullptr) {
    fmt::print(
        stderr,
        "load: transport is shm, uds or tcp, there are at least 20 steps, and a folder for the "
        "run file can be made ({})\n",
        folder);
    return 2;
  }
  Job job;
  job.cluster.workers = settings.workers;
  job.cluster.shards = settings.shards;
  job.steps = settings.steps;
  job.batch = 1;
  job.waiting.policy = settings.policy;
  job.cluster.transport = transports.at(settings.transport);
  job.record.run_file = folder + "/run.db";
  const WorkerFactory factory{.worker =
                                  [&](const WorkerSettings& worker) {
                                    LightTask task(settings.floats);
                                    return run_worker(worker, task);
                                  },
                              .evaluator = nullptr};
  const int status =
      launch(job, factory, {.run_id = static_cast<RunId>(::getpid())},
             {.view = [&] { return std::make_unique<LoadView>(settings); }, .fitter = nullptr});
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return status;
}

bool read(std::string_view word, LoadSettings& settings) {
  const size_t sign = word.find('=');
  if (word == "simulate") return settings.simulate = true;
  if (sign == std::string_view::npos) return false;
  const std::string_view key = word.substr(0, sign);
  const std::string_view value = word.substr(sign + 1);
  const auto number = [&](auto& into) {
    const auto [stop, trouble] = std::from_chars(value.begin(), value.end(), into);
    return trouble == std::errc() && stop == value.end() && into > 0;
  };
  if (key == "workers") return number(settings.workers);
  if (key == "shards") return number(settings.shards);
  if (key == "steps") return number(settings.steps);
  if (key == "floats") return number(settings.floats);
  if (key == "policy") settings.policy = value;
  if (key == "transport") settings.transport = value;
  return key == "policy" || key == "transport";
}

}  // namespace
}  // namespace drover

int main(int argc, char** argv) {
  drover::LoadSettings settings;
  for (int i = 1; i < argc; ++i) {
    if (drover::read(argv[i], settings)) continue;
    std::fprintf(stderr, "load: unknown argument '%s'; see the first lines of bench/load.cc\n",
                 argv[i]);
    return 2;
  }
  return settings.simulate ? drover::run_simulated(settings) : drover::run_real(settings);
}

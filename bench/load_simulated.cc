// A simulated run with very many light workers; see bench/load.cc.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "load.h"
#include "node/clock.h"
#include "node/host.h"
#include "policy/catalogue.h"
#include "sim/pull_task.h"
#include "sim/simulation.h"

namespace drover {
namespace {

class MessageCount final : public Witness {
 public:
  void on_sent(Party, const Outgoing&, TimePoint) override { ++messages; }
  void on_received(Party, const Outgoing&, TimePoint) override {}
  void on_lost(Party, WorkerId, TimePoint) override { ++lost; }
  void on_breach(const std::string&, TimePoint) override {}
  void on_load(const Load& load, TimePoint) override {
    ++events;
    waiting = std::max(waiting, load.events);
  }

  uint64_t messages = 0;
  uint64_t events = 0;
  uint64_t lost = 0;
  size_t waiting = 0;
};

}  // namespace

int run_simulated(const LoadSettings& load) {
  SimulationSettings settings;
  settings.coordinator.workers = load.workers;
  settings.coordinator.shards = load.shards;
  settings.coordinator.steps = load.steps;
  settings.coordinator.evaluator = false;
  settings.coordinator.learning.schedule.base = 0.1;
  settings.scenario.run_times.push_back(
      {{}, {.kind = RunTimeKind::kLognormal, .mean = 1.0, .deviation = 0.3}});
  if (const auto policy = make_policy(load.policy, {}); !policy) {
    fmt::print(stderr, "load: {}\n", policy.error().message);
    return 2;
  }
  const auto policy = [&] { return std::move(make_policy(load.policy, {})).value(); };
  PullTask task;
  MessageCount count;
  const TimePoint began = clock_now();
  const auto end = Simulation(settings, policy, task, {}, &count).run([] { return true; });
  const double took = seconds(clock_now() - began);
  if (!end) {
    fmt::print(stderr, "load: {}\n", end.error().message);
    return 1;
  }
  fmt::print(
      "simulated: {} workers, {} shards, {} steps, {}: {:.1f} s ({:.1f} s of CPU), {:.0f} "
      "events/s, {:.0f} "
      "messages/s\n{} messages, at most {} under way; {} lost; {:.1f} MB at most\n",
      load.workers, load.shards, load.steps, load.policy, took,
      static_cast<double>(std::clock()) / CLOCKS_PER_SEC, static_cast<double>(count.events) / took,
      static_cast<double>(count.messages) / took, count.messages, count.waiting, count.lost,
      static_cast<double>(peak_memory_bytes(::getpid())) / (1 << 20));
  return end.value().outcome == RunOutcome::kCompleted ? 0 : 1;
}

}  // namespace drover

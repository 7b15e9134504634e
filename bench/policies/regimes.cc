#include "policies/regimes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "core/random_draw.h"
#include "forecast/normal.h"

namespace drover {

// One made-up cluster. Randomness is a function of the seed, a step, a worker and what it is for,
// so that a regime can look back at any step.
struct Cluster {
  uint32_t workers = 0;
  Step steps = 0;
  uint64_t seed = 0;

  // Uniform in (0, 1). `use` distinguishes draws.
  double unit(uint64_t use, uint64_t a = 0, uint64_t b = 0) const {
    return unit_interval(draw({seed, static_cast<uint64_t>(Purpose::kRunTimes), use, a, b}) |
                         (uint64_t{1} << 11));
  }
  double normal(uint64_t use, uint64_t a = 0, uint64_t b = 0) const {
    return normal_quantile(unit(use, a, b));
  }
  double exponential(uint64_t use, uint64_t a = 0, uint64_t b = 0) const {
    return -std::log(unit(use, a, b));
  }
  double noise(Step step, WorkerId worker, double spread = 0.04) const {
    return std::exp(spread * normal(1, step, worker));
  }
  // A level that this worker keeps.
  double own(WorkerId worker, double spread) const { return std::exp(spread * normal(2, worker)); }
  // The first ones, about so many, and at least one.
  bool among(WorkerId worker, double share) const {
    return worker < std::max(1.0, std::round(share * workers));
  }
  double done(Step step) const { return static_cast<double>(step) / static_cast<double>(steps); }
  // Whether `id` is in a spell in this step, if spells begin and end with these probabilities.
  bool in_spell(Step step, uint64_t id, double begins, double ends) const {
    bool on = unit(3, id) < begins / (begins + ends);
    for (Step each = 1; each <= step; ++each)
      on = on ? unit(4, each, id) >= ends : unit(4, each, id) < begins;
    return on;
  }
  uint32_t node(WorkerId worker) const { return worker / std::max(1U, workers / 8); }
};

namespace {

// Of draws, so that each use has its own.
enum Use : uint64_t { kSpike = 10, kSize, kStep, kPick, kWalk, kCommon };

double walk(const Cluster& cluster, Step step, uint64_t id, double spread) {
  double sum = 0.0;
  for (Step each = 1; each <= step; ++each) sum += spread * cluster.normal(kWalk, each, id);
  return sum;
}

double calm(Cluster& c, Step s, WorkerId w) { return c.noise(s, w, 0.03); }
double noisy(Cluster& c, Step s, WorkerId w) { return c.noise(s, w, 0.2); }
double unequal(Cluster& c, Step s, WorkerId w) { return c.own(w, 0.3) * c.noise(s, w); }
double slow_workers(Cluster& c, Step s, WorkerId w) {
  return (c.among(w, 0.1) ? 3.0 : 1.0) * c.noise(s, w);
}
double worker_spells(Cluster& c, Step s, WorkerId w) {
  return (c.in_spell(s, w, 1.0 / 60, 1.0 / 20) ? 2.5 : 1.0) * c.noise(s, w);
}
double node_spells(Cluster& c, Step s, WorkerId w) {
  return (c.in_spell(s, 1000 + c.node(w), 1.0 / 80, 1.0 / 20) ? 3.0 : 1.0) * c.noise(s, w);
}
// All ranks wait for each other: what varies is common to all.
double coupled(Cluster& c, Step s, WorkerId w) {
  return 0.5 + c.exponential(kCommon, s) * 0.3 + 0.01 * c.unit(kSize, s, w);
}
// Each rank waits for its neighbours.
double coupled_ring(Cluster& c, Step s, WorkerId w) {
  double longest = 0.0;
  for (uint32_t offset = 0; offset < 3; ++offset) {
    const WorkerId other = (w + offset) % c.workers;
    const double spike = c.unit(kSpike, s, other) < 0.02 ? 1.0 + c.exponential(kSize, s, other) : 1;
    longest = std::max(longest, spike * c.noise(s, other, 0.02));
  }
  return longest;
}
double recovers_in_part(Cluster& c, Step s, WorkerId w) {
  const double slow = c.done(s) < 0.4 ? 3.0 : 1.3;
  return (c.among(w, 0.5) ? slow : 1.0) * c.noise(s, w);
}
double recovers(Cluster& c, Step s, WorkerId w) {
  return (c.among(w, 0.2) && c.done(s) < 0.5 ? 5.0 : 1.0) * c.noise(s, w);
}
double jump(Cluster& c, Step s, WorkerId w) {
  const double load = c.among(w, 0.12) ? 30.0 : 100.0;
  return (c.done(s) < 0.25 ? 1.0 : load) * c.own(w, 0.1) * c.noise(s, w, 0.1);
}
double jump_and_back(Cluster& c, Step s, WorkerId w) {
  const bool loaded = c.done(s) >= 0.3 && c.done(s) < 0.6;
  return (loaded && !c.among(w, 0.2) ? 10.0 : 1.0) * c.noise(s, w, 0.08);
}
double onset(Cluster& c, Step s, WorkerId w) {
  return (c.among(w, 0.25) && c.done(s) >= 0.5 ? 2.0 : 1.0) * c.noise(s, w);
}
double common_stalls(Cluster& c, Step s, WorkerId w) {
  return (c.unit(kCommon, s) < 0.03 ? 8.0 : 1.0) * c.noise(s, w);
}
double rotating(Cluster& c, Step s, WorkerId w) {
  return (w == s % c.workers ? 4.0 : 1.0) * c.noise(s, w);
}
double one_at_random(Cluster& c, Step s, WorkerId w) {
  const auto slow = static_cast<WorkerId>(c.unit(kPick, s) * c.workers);
  return (w == slow ? 4.0 : 1.0) * c.noise(s, w);
}
double alternating_halves(Cluster& c, Step s, WorkerId w) {
  return ((w < c.workers / 2) == (s % 2 == 0) ? 2.0 : 1.0) * c.noise(s, w);
}
double spikes(Cluster& c, Step s, WorkerId w) {
  const double spike =
      c.unit(kSpike, s, w) < 0.05 ? 1.0 + std::pow(c.unit(kSize, s, w), -1.0 / 1.5) : 1.0;
  return spike * c.noise(s, w);
}
double common_levels(Cluster& c, Step s, WorkerId w) {
  return std::exp(0.7 * c.normal(kCommon, s / 50)) * c.noise(s, w);
}
double common_drift(Cluster& c, Step s, WorkerId w) {
  return std::exp(walk(c, s, 9999, 0.08)) * c.noise(s, w);
}
double group_swaps(Cluster& c, Step s, WorkerId w) {
  return ((w < c.workers / 2) == (s / 40 % 2 == 0) ? 2.5 : 1.0) * c.noise(s, w);
}
double memoryless(Cluster& c, Step s, WorkerId w) { return 0.3 + 0.7 * c.exponential(kSize, s, w); }
double memoryless_pareto(Cluster& c, Step s, WorkerId w) {
  return std::pow(c.unit(kSize, s, w), -1.0 / 2.0);
}
double bimodal(Cluster& c, Step s, WorkerId w) {
  return (c.unit(kSpike, s, w) < 0.2 ? 1.6 : 1.0) * c.noise(s, w);
}
// Every few dozen steps one worker stalls for long.
double rare_stalls(Cluster& c, Step s, WorkerId w) {
  const auto id = static_cast<WorkerId>(c.unit(kPick, s) * c.workers);
  const bool stalls = c.unit(kStep, s) < 1.0 / 70 && w == id;
  return (stalls ? 5.0 + 20.0 * c.unit(kSize, s) : 1.0) * c.noise(s, w, 0.02);
}
double rising_load(Cluster& c, Step s, WorkerId w) {
  const double load = static_cast<double>(s / 25);
  const bool hit = c.unit(kPick, w) < 0.15 * load;
  return (1.0 + 0.1 * load) * (hit ? 1.0 + 0.5 * load : 1.0) * c.own(w, 0.1) * c.noise(s, w, 0.1);
}
double drifting(Cluster& c, Step s, WorkerId w) {
  return std::exp(walk(c, s, w, 0.05)) * c.noise(s, w);
}
double period_of_a_third(Cluster& c, Step s, WorkerId w) {
  return (s % 10 == 3 && w < std::max(1U, c.workers / 3) ? 2.5 : 1.0) * c.noise(s, w);
}
double period_of_all(Cluster& c, Step s, WorkerId w) {
  return (s % 7 == 2 ? 3.0 : 1.0) * c.noise(s, w);
}
double staggered_periods(Cluster& c, Step s, WorkerId w) {
  return ((s + 3 * w) % 12 == 0 ? 2.5 : 1.0) * c.noise(s, w);
}
double short_run(Cluster& c, Step s, WorkerId w) {
  return (c.among(w, 0.2) ? 3.0 : 1.0) * c.noise(s, w);
}
double heavy_levels(Cluster& c, Step s, WorkerId w) {
  const Step era = (s + static_cast<Step>(60.0 * c.unit(kPick, w))) / 60;
  return std::pow(c.unit(kSize, era, w), -1.0 / 1.2) * c.noise(s, w, 0.25);
}
double cold_starts(Cluster& c, Step s, WorkerId w) {
  const double tail = c.unit(kSpike, s, w) < 0.02 ? std::pow(c.unit(kSize, s, w), -1.0 / 1.5) : 0.0;
  return c.own(w, 0.15) * c.noise(s, w, 0.12) * (1.0 + tail);
}
double mixed(Cluster& c, Step s, WorkerId w) {
  return node_spells(c, s, w) * c.own(w, 0.1) * (c.unit(kSpike, s, w) < 0.02 ? 2.0 : 1.0);
}
// A quarter of the workers leaves for the middle third of the run.
double leaving(Cluster& c, Step s, WorkerId w) {
  if (!c.among(w, 0.75) && c.done(s) > 0.33 && c.done(s) < 0.66)
    return std::numeric_limits<double>::quiet_NaN();
  return worker_spells(c, s, w);
}
double two_speeds(Cluster& c, Step s, WorkerId w) {
  return (w % 2 == 0 ? 1.6 : 1.0) * c.noise(s, w, 0.1);
}
double long_spells_of_one(Cluster& c, Step s, WorkerId w) {
  const auto slow = static_cast<WorkerId>(c.unit(kPick, s / 30) * c.workers);
  return (w == slow ? 6.0 : 1.0) * c.noise(s, w, 0.05);
}

constexpr Step kSteps = 300;
constexpr std::array kRegimes = {
    Regime{"calm", "equal workers, 3 % noise", kSteps, calm},
    Regime{"noisy", "equal workers, 20 % noise", kSteps, noisy},
    Regime{"unequal", "each worker at its own speed, spread 30 %", kSteps, unequal},
    Regime{"two-speeds", "every second worker 1.6 x slower", kSteps, two_speeds},
    Regime{"slow-workers", "a tenth 3 x slower throughout", kSteps, slow_workers},
    Regime{"worker-spells", "slow spells of single workers, 20 steps long", kSteps, worker_spells},
    Regime{"node-spells", "slow spells of an eighth of the workers", kSteps, node_spells},
    Regime{"one-long-spell", "one worker 6 x slower, another every 30 steps", kSteps,
           long_spells_of_one},
    Regime{"coupled", "ranks wait for each other: only the step varies", kSteps, coupled},
    Regime{"coupled-ring", "ranks wait for their neighbours' spikes", kSteps, coupled_ring},
    Regime{"recovers-in-part", "half 3 x slower until 40 %, then 1.3 x", kSteps, recovers_in_part},
    Regime{"recovers", "a fifth 5 x slower for the first half", kSteps, recovers},
    Regime{"jump", "at a quarter most become 100 x slower, some 30 x", 100, jump},
    Regime{"jump-and-back", "most become 10 x slower for a third of the run", kSteps,
           jump_and_back},
    Regime{"onset", "a quarter becomes 2 x slower half-way", kSteps, onset},
    Regime{"common-stalls", "3 % of the steps are 8 x slower for all", kSteps, common_stalls},
    Regime{"rotating", "each step another worker is 4 x slower, in turns", kSteps, rotating},
    Regime{"one-at-random", "each step one worker is 4 x slower", kSteps, one_at_random},
    Regime{"alternating-halves", "halves take turns at being 2 x slower", kSteps,
           alternating_halves},
    Regime{"group-swaps", "halves take turns at being 2.5 x slower, for 40 steps", kSteps,
           group_swaps},
    Regime{"spikes", "5 % of the run-times have a Pareto tail", kSteps, spikes},
    Regime{"cold-starts", "own levels, 12 % noise, 2 % Pareto tails", kSteps, cold_starts},
    Regime{"common-levels", "every 50 steps another level of all", kSteps, common_levels},
    Regime{"common-drift", "the level of all is a random walk", kSteps, common_drift},
    Regime{"memoryless", "exponential, shifted", kSteps, memoryless},
    Regime{"memoryless-pareto", "Pareto, exponent 2", kSteps, memoryless_pareto},
    Regime{"bimodal", "a fifth of the run-times is 1.6 x longer", kSteps, bimodal},
    Regime{"rare-stalls", "one step in 70 has one worker that stalls", 600, rare_stalls},
    Regime{"rising-load", "every 25 steps more load, on more workers", kSteps, rising_load},
    Regime{"drifting", "each worker's level is a random walk", kSteps, drifting},
    Regime{"period-of-a-third", "every tenth step a third is 2.5 x slower", kSteps,
           period_of_a_third},
    Regime{"period-of-all", "every seventh step is 3 x slower for all", kSteps, period_of_all},
    Regime{"staggered-periods", "each worker is 2.5 x slower every twelfth step", kSteps,
           staggered_periods},
    Regime{"short-run", "60 steps, a fifth 3 x slower", 60, short_run},
    Regime{"heavy-levels", "levels with a Pareto tail that last 60 steps", kSteps, heavy_levels},
    Regime{"mixed", "spells of nodes, own levels, spikes", kSteps, mixed},
    Regime{"leaving", "spells; a quarter is away for a third of the run", kSteps, leaving},
};

}  // namespace

std::span<const Regime> regimes() { return kRegimes; }

Trace make_regime(const Regime& regime, uint32_t workers, uint64_t seed) {
  Cluster cluster{
      workers, regime.steps,
      draw({seed, workers, regime.name.size(), static_cast<uint64_t>(regime.name.front())})};
  Trace trace;
  trace.path = regime.name;
  for (WorkerId worker = 0; worker < workers; ++worker)
    trace.workers.push_back("w" + std::to_string(worker));
  trace.times.reserve(regime.steps * workers);
  for (Step step = 0; step < regime.steps; ++step) {
    for (WorkerId worker = 0; worker < workers; ++worker)
      trace.times.push_back(regime.run_time(cluster, step, worker));
  }
  return trace;
}

}  // namespace drover

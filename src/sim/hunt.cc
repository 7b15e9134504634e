#include "sim/hunt.h"

#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"
#include "policy/catalogue.h"
#include "sim/hunt_rules.h"
#include "sim/observed_policy.h"
#include "sim/pull_task.h"
#include "sim/referee.h"

namespace drover {
namespace {

HuntResult run_once(const HuntCase& hunt) {
  PullTask task(hunt.settings.scripts.has_value());
  const CoordinatorSettings& job = hunt.settings.coordinator;
  Referee referee(rules_for(hunt));
  RunTimes future(hunt.settings.scenario, job.workers, hunt.settings.seed);
  const auto foresight = [&](Step step, std::span<const WorkerId> alive) {
    std::vector<double> times;
    for (const WorkerId worker : alive) times.push_back(future.seconds(step, worker));
    return times;
  };
  const auto policy = [&]() -> std::unique_ptr<Policy> {
    if (job.asynchronous) return nullptr;
    auto made = make_policy(
        hunt.policy,
        {.warmup = 2, .seed = hunt.settings.seed, .live = hunt.live, .foresight = foresight});
    DROVER_CHECK(made.ok());
    return std::make_unique<ObservedPolicy>(
        std::move(made).value(), [&](const StepTimes& times) { referee.on_learned(times); },
        [&](Step step, WorkerId worker) { referee.on_learned_late(step, worker); });
  };
  Simulation simulation(hunt.settings, policy, task, {&referee}, &referee);
  const auto end = simulation.run([&] { return referee.verdict().empty(); });
  if (end) referee.on_run_over(end.value());
  return {referee.verdict(), end ? end.value() : RunEnd{}, referee.most()};
}

}  // namespace

HuntResult run_hunt_case(const HuntCase& hunt) {
  HuntResult result = run_once(hunt);
  if (!result.verdict.empty() || !is_order_independent(hunt)) return result;
  if (result.end.outcome != RunOutcome::kCompleted) return result;
  // The second run has the same gradients in another order, through other shards.
  HuntCase again = hunt;
  again.settings.seed = ~hunt.settings.seed;
  // With another number of shards tensors are split into other blocks, whose norms are rounded
  // differently.
  if (hunt.settings.coordinator.learning.guard == GuardRule::kOff)
    again.settings.coordinator.shards =
        1 + hunt.settings.coordinator.shards % HuntCase::kShardsMost;
  for (Stall& stall : again.settings.scenario.stalls)
    stall.shard %= again.settings.coordinator.shards;
  // The second run is not interrupted.
  again.settings.scenario.server_deaths.clear();
  again.settings.scenario.repeated_closings.clear();
  const HuntResult other = run_once(again);
  result.verdict = other.verdict;
  if (other.verdict.empty() && other.end.parameters_digest != result.end.parameters_digest)
    result.verdict = is_interrupted(hunt)
                         ? "without interruptions the parameters are different"
                         : "with another order of messages the parameters are different";
  return result;
}

}  // namespace drover

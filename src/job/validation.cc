#include "job/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "core/slowness.h"
#include "job/settings.h"
#include "policy/catalogue.h"
#include "wire/limits.h"

namespace drover {
namespace {

// A placeholder for future run-times, which only a simulation knows; never called here.
std::vector<double> some_foresight(Step, std::span<const WorkerId> alive) {
  return std::vector<double>(alive.size(), 1.0);
}

// Checks every setting by itself.
Status check_each(const Job& job) {
  Job copy = job;
  for (const Setting& setting : job_settings()) {
    const Status status = setting.set(copy, setting.get(job));
    if (!status) {
      return invalid_input(fmt::format("{}: {}", key_and_flag(setting), status.error().message));
    }
  }
  return done();
}

Status check_schedule(const Job& job) {
  if (job.learning.schedule.kind == ScheduleKind::kStep && job.learning.schedule.decay_every == 0) {
    return invalid_input(
        "lr_decay_every (--lr-decay-every): the schedule 'step' needs the number of steps between "
        "decays, such as 100");
  }
  if (job.learning.schedule.floor > job.learning.schedule.base) {
    return invalid_input(
        fmt::format("lr_floor (--lr-floor): must be at most the learning rate {}, not {}",
                    job.learning.schedule.base, job.learning.schedule.floor));
  }
  return done();
}

Status check_stop_at(const Job& job) {
  if (job.record.stop_at && job.record.evaluate_every == 0) {
    return invalid_input(
        "evaluate_every (--evaluate-every): is 0, so only the last step would be compared with "
        "stop_at (--stop-at); set the number of steps between evaluations, such as 10");
  }
  return done();
}

Status check_deterministic(const Job& job) {
  if (job.learning.deterministic && asynchronous_of(job.waiting.policy).value()) {
    return invalid_input(
        fmt::format("deterministic (--deterministic): the policy '{}' applies every gradient when "
                    "it arrives, so that no run repeats bit for bit. Remove one of the two",
                    job.waiting.policy));
  }
  return done();
}

Status check_mpi(const Job& job) {
  if (job.cluster.transport == Transport::kMpi && job.cluster.supervise) {
    return invalid_input(
        std::string(job.cluster.standby ? "standby (--standby)" : "supervise (--supervise)") +
        ": with the transport mpi no process can be restarted: MPI ends all ranks when it loses "
        "one. Remove one of the two; with --checkpoint, a run that has lost a rank continues with "
        "--resume");
  }
  return done();
}

Status check_pull(const Job& job) {
  if (job.waiting.pull == 1.0) return done();
  if (asynchronous_of(job.waiting.policy).value()) {
    return invalid_input(fmt::format(
        "pull (--pull): with the policy '{}' workers never wait for blocks, so that a share of "
        "them has no meaning. Remove one of the two",
        job.waiting.policy));
  }
  return done();
}

Status check_standby(const Job& job) {
  if (!job.cluster.standby) return done();
  const bool asynchronous = asynchronous_of(job.waiting.policy).value().has_value();
  if (!asynchronous && job.waiting.pull == 1.0) return done();
  return invalid_input(fmt::format(
      "standby (--standby): {} shards are at different steps, so that a standby has no step to "
      "continue from. Use --supervise and --checkpoint instead",
      asynchronous ? fmt::format("with the policy '{}'", job.waiting.policy) : "with --pull"));
}

Status check_live_and_balance(const Job& job) {
  const bool asynchronous = asynchronous_of(job.waiting.policy).value().has_value();
  if (asynchronous && (job.waiting.live || job.waiting.balance)) {
    return invalid_input(fmt::format(
        "{}: needs common steps of all workers, which the policy '{}' does not have. Remove one of "
        "the two",
        job.waiting.live ? "live (--live)" : "balance (--balance)", job.waiting.policy));
  }
  if (job.waiting.live) {
    const auto policy =
        make_policy(job.waiting.policy, {.live = true, .foresight = some_foresight});
    if (!policy) return invalid_input("live (--live): " + policy.error().message);
  }
  if (job.waiting.balance && job.waiting.balance_least * job.batch < 1.0) {
    return invalid_input(fmt::format(
        "balance_least: {} of a batch of {} samples is less than one sample; set at least {:.3g}, "
        "or a larger batch",
        job.waiting.balance_least, job.batch, 1.0 / job.batch));
  }
  return done();
}

Status check_guard(const Job& job) {
  if (job.learning.guard != GuardRule::kOff &&
      std::max(job.cluster.workers, job.cluster.workers_max) < kGuardWorkersMin) {
    return invalid_input(
        fmt::format("guard (--guard): needs at least {} workers, not {}, to identify the outlier",
                    kGuardWorkersMin, job.cluster.workers));
  }
  return done();
}

Status check_workers(const Job& job) {
  if (job.cluster.workers_max != 0 && job.cluster.workers_max < job.cluster.workers) {
    return invalid_input(fmt::format(
        "workers_max (--workers-max): must be at least the number of workers, {}, not {}",
        job.cluster.workers, job.cluster.workers_max));
  }
  if (job.waiting.min_contributors > job.cluster.workers) {
    return invalid_input(fmt::format(
        "min_contributors (--min-contributors): must be at most the number of workers, {}, not {}",
        job.cluster.workers, job.waiting.min_contributors));
  }
  return done();
}

Status check_slow(const Job& job) {
  for (const SlowRule& rule : job.cluster.slow) {
    if (rule.workers && rule.workers->second >= job.cluster.workers) {
      return invalid_input(fmt::format(
          "slow (--slow): the rule '{}' names worker {}, but {} workers are numbered 0 to {}",
          to_text(rule), rule.workers->second, job.cluster.workers, job.cluster.workers - 1));
    }
  }
  return done();
}

}  // namespace

void finish(Job& job) {
  job.learning.schedule.total_steps = job.steps;
  job.cluster.supervise = job.cluster.supervise || job.cluster.standby;
}

Status validate(const Job& job) {
  // The most basic errors first.
  for (const auto& check :
       {check_each, check_schedule, check_stop_at, check_deterministic, check_mpi, check_pull,
        check_standby, check_guard, check_live_and_balance, check_workers, check_slow}) {
    if (const Status status = check(job); !status) return status;
  }
  return done();
}

}  // namespace drover

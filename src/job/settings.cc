#include "job/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/duration_text.h"
#include "job/setting_kinds.h"
#include "job/setting_values.h"
#include "policy/catalogue.h"
#include "wire/limits.h"

namespace drover {
namespace {

constexpr auto kTask = SettingGroup::kTask;
constexpr auto kProcesses = SettingGroup::kProcesses;
constexpr auto kLearning = SettingGroup::kLearning;
constexpr auto kWaiting = SettingGroup::kWaiting;
constexpr auto kRecord = SettingGroup::kRecord;
constexpr auto kMain = Listing::kMain;
constexpr auto kMore = Listing::kMore;
constexpr auto kJobFile = Listing::kJobFile;

constexpr NumberRange kDecay = {0.0, 1.0, false, true};
constexpr NumberRange kRate = {0.0, kLearningRateMax, true, false};

std::string_view text_itself(const std::string& text) { return text; }

// NOLINTNEXTLINE(readability-function-size): a list, read from top to bottom.
std::vector<Setting> make_settings() {
  return {
      text_setting(
          {"model", kTask, kMain,
           "logistic, mlp, mlp25m, lenet, lenet-wide, resnet20 or transformer"},
          [](auto& job) -> auto& { return job.task.model; }, MayBeEmpty::kNo),
      text_setting(
          {"data", kTask, kMain, "name of a data set, or a folder or file"},
          [](auto& job) -> auto& { return job.task.data; }, MayBeEmpty::kNo),
      text_setting(
          {"data_dir", kTask, kMore,
           "folder of downloaded data sets (default: ~/.local/share/drover)"},
          [](auto& job) -> auto& { return job.task.data_dir; }, MayBeEmpty::kYes),
      count_setting(
          {"generated_samples", kTask, kMore, "number of samples of the generated data set"},
          [](auto& job) -> auto& { return job.task.generated_samples; }, 1, kGeneratedSamplesMax),
      count_setting(
          {"seed", kTask, kMain, "random seed"}, [](auto& job) -> auto& { return job.task.seed; },
          0, kSeedMax),
      count_setting(
          {"steps", kTask, kMain, "number of updates of the parameters"},
          [](auto& job) -> auto& { return job.steps; }, 1, kStepsMax),
      count_setting(
          {"batch", kTask, kMain, "samples per worker and step"},
          [](auto& job) -> auto& { return job.batch; }, 1, kSamplesMax),
      count_setting(
          {"micro_batch", kTask, kMore,
           "compute a gradient in pieces of N samples (0: in one piece)"},
          [](auto& job) -> auto& { return job.task.micro_batch; }, 0, kSamplesMax),
      choice_setting(
          {"partition", kTask, kMore,
           "data of each worker: none (all), random or label (a share of its own)"},
          [](auto& job) -> auto& { return job.task.partition; }, partition_name, parse_partition),
      count_setting(
          {"evaluate_every", kTask, kMain, "steps between evaluations (0: only at the end)"},
          [](auto& job) -> auto& { return job.record.evaluate_every; }, 0, kStepsMax),
      choice_setting(
          {"stop_at", kTask, kMain, "stop at this result: accuracy=0.97 or loss=0.2"},
          [](auto& job) -> auto& { return job.record.stop_at; }, stop_at_text, parse_stop_at),

      choice_setting(
          {"optimizer", kLearning, kMain, "sgd, momentum, nesterov, rmsprop, adam or adamw"},
          [](auto& job) -> auto& { return job.learning.optimizer.kind; },
          [](OptimizerKind kind) { return name_of(kind); }, parse_optimizer),
      number_setting(
          {"momentum", kLearning, kMain, "momentum of momentum and nesterov"},
          [](auto& job) -> auto& { return job.learning.optimizer.momentum; }, kDecay),
      number_setting({"weight_decay", kLearning, kMain, "weight decay (decoupled with adamw)"},
                     [](auto& job) -> auto& { return job.learning.optimizer.weight_decay; },
                     {0.0, kWeightDecayMax}),
      number_setting(
          {"ema", kLearning, kMore,
           "decay of the averaged parameters that are evaluated (0: no average)"},
          [](auto& job) -> auto& { return job.learning.optimizer.ema_decay; }, kDecay),
      number_setting(
          {"beta1", kLearning, kJobFile, "first decay rate of adam and adamw"},
          [](auto& job) -> auto& { return job.learning.optimizer.beta1; }, kDecay),
      number_setting(
          {"beta2", kLearning, kJobFile, "second decay rate of adam and adamw"},
          [](auto& job) -> auto& { return job.learning.optimizer.beta2; }, kDecay),
      number_setting({"epsilon", kLearning, kJobFile, "epsilon of rmsprop, adam and adamw"},
                     [](auto& job) -> auto& { return job.learning.optimizer.epsilon; },
                     {0.0, 1.0, true, false}),
      number_setting(
          {"rms_decay", kLearning, kJobFile, "decay rate of rmsprop"},
          [](auto& job) -> auto& { return job.learning.optimizer.rms_decay; }, kDecay),
      number_setting(
          {"rms_momentum", kLearning, kJobFile, "momentum of rmsprop"},
          [](auto& job) -> auto& { return job.learning.optimizer.rms_momentum; }, kDecay),

      choice_setting(
          {"schedule", kLearning, kMain, "learning-rate schedule: constant, step or cosine"},
          [](auto& job) -> auto& { return job.learning.schedule.kind; },
          [](ScheduleKind kind) { return name_of(kind); }, parse_schedule),
      number_setting(
          {"lr", kLearning, kMain, "learning rate after the warm-up"},
          [](auto& job) -> auto& { return job.learning.schedule.base; }, kRate),
      count_setting(
          {"lr_warmup", kLearning, kMain, "steps in which the learning rate rises to lr"},
          [](auto& job) -> auto& { return job.learning.schedule.warmup_steps; }, 0, kStepsMax),
      count_setting(
          {"lr_decay_every", kLearning, kMore, "with the schedule step: steps between decays"},
          [](auto& job) -> auto& { return job.learning.schedule.decay_every; }, 0, kStepsMax),
      number_setting(
          {"lr_decay_factor", kLearning, kMore, "with the schedule step: factor of each decay"},
          [](auto& job) -> auto& { return job.learning.schedule.decay_factor; },
          {0.0, 1.0, true, false}),
      number_setting(
          {"lr_floor", kLearning, kMore, "with the schedule cosine: learning rate at the end"},
          [](auto& job) -> auto& { return job.learning.schedule.floor; }, {0.0, kLearningRateMax}),
      choice_setting(
          {"lr_rule", kLearning, kMore,
           "learning rate of a step with fewer samples: none, linear, sqrt, adascale"},
          [](auto& job) -> auto& { return job.learning.schedule.rule; },
          [](RateRule rule) { return name_of(rule); }, parse_rate_rule),

      count_setting(
          {"workers", kProcesses, kMain, "number of worker processes"},
          [](auto& job) -> auto& { return job.cluster.workers; }, 1, kWorkersMax),
      count_setting(
          {"workers_max", kProcesses, kMore,
           "most workers, including those that join later (0: none join)"},
          [](auto& job) -> auto& { return job.cluster.workers_max; }, 0, kWorkersMax),
      count_setting(
          {"shards", kProcesses, kMain, "number of parameter server processes"},
          [](auto& job) -> auto& { return job.cluster.shards; }, 1, kShardsMax),
      choice_setting(
          {"transport", kProcesses, kMore,
           "auto, shm (shared memory), uds (Unix sockets), tcp or mpi"},
          [](auto& job) -> auto& { return job.cluster.transport; }, transport_name,
          parse_transport),
      choice_setting(
          {"wire_dtype", kProcesses, kMore,
           "type of gradients on sockets: float32, bfloat16 or float16"},
          [](auto& job) -> auto& { return job.cluster.wire_dtype; }, number_type_name,
          parse_number_type),
      choice_setting(
          {"listen", kProcesses, kMore,
           "address of the coordinator with tcp (port 0: any free port)"},
          [](auto& job) -> auto& { return job.cluster.listen; }, text_itself, parse_address),
      text_setting(
          {"tls", kProcesses, kMore,
           "encrypt tcp connections with the keys in this folder ('drover keys make')"},
          [](auto& job) -> auto& { return job.cluster.tls; }, MayBeEmpty::kYes),
      switch_setting(
          {"insecure", kProcesses, kMore,
           "allow an address that other hosts can reach, without TLS"},
          [](auto& job) -> auto& { return job.cluster.insecure; }),
      count_setting(
          {"window", kProcesses, kJobFile, "bytes of gradients in flight to one shard, at most"},
          [](auto& job) -> auto& { return job.cluster.window; }, 1, kWindowMax),

      choice_setting(
          {"policy", kWaiting, kMain,
           "rule for how long a step waits ('drover policies' lists them)"},
          [](auto& job) -> auto& { return job.waiting.policy; }, text_itself, parse_policy),
      choice_setting(
          {"objective", kWaiting, kMore,
           "objective of forecasting policies: throughput, rate or goodput"},
          [](auto& job) -> auto& { return job.waiting.objective; },
          [](Objective objective) { return name_of(objective); }, parse_objective),
      count_setting(
          {"policy_warmup", kWaiting, kMore,
           "steps in which an adaptive policy waits for all workers"},
          [](auto& job) -> auto& { return job.waiting.policy_warmup; }, 0, kStepsMax),
      count_setting(
          {"min_contributors", kWaiting, kMore,
           "fewest gradients per step, as far as workers are alive"},
          [](auto& job) -> auto& { return job.waiting.min_contributors; }, 1, kWorkersMax),
      choice_setting(
          {"max_wait", kWaiting, kMore,
           "longest wait of a step that has min_contributors, such as 10s, or none"},
          [](auto& job) -> auto& { return job.waiting.max_wait; }, max_wait_text, parse_max_wait),
      number_setting({"min_inclusion", kWaiting, kMore,
                      "smallest share of steps that each worker contributes to (0: any)"},
                     [](auto& job) -> auto& { return job.waiting.min_inclusion; }, {0.0, 1.0}),
      choice_setting(
          {"pull", kWaiting, kMore,
           "share of the blocks that a worker waits for before it starts, or auto"},
          [](auto& job) -> auto& { return job.waiting.pull; }, pull_text, parse_pull),
      choice_setting(
          {"pull_grace", kWaiting, kMore,
           "with --pull: extra wait for the other blocks, such as 5ms"},
          [](auto& job) -> auto& { return job.waiting.pull_grace; }, duration_text, parse_grace),
      choice_setting(
          {"push_grace", kWaiting, kMore,
           "extra wait of a block that has enough gradients, such as 5ms"},
          [](auto& job) -> auto& { return job.waiting.push_grace; }, duration_text, parse_grace),
      choice_setting(
          {"stragglers", kWaiting, kMore,
           "work on a closed step: stop (start the next step) or finish"},
          [](auto& job) -> auto& { return job.waiting.stragglers; }, straggler_rule_name,
          parse_straggler_rule),
      switch_setting(
          {"live", kWaiting, kMain, "decide again inside each step (forecasting policies)"},
          [](auto& job) -> auto& { return job.waiting.live; }),
      switch_setting(
          {"balance", kWaiting, kMain, "mini-batches in proportion to the speed of each worker"},
          [](auto& job) -> auto& { return job.waiting.balance; }),
      number_setting(
          {"balance_least", kWaiting, kJobFile, "with balance: smallest share of the mini-batch"},
          [](auto& job) -> auto& { return job.waiting.balance_least; }, {0.0, 1.0, true, false}),
      number_setting(
          {"balance_most", kWaiting, kJobFile, "with balance: largest share of the mini-batch"},
          [](auto& job) -> auto& { return job.waiting.balance_most; }, {1.0, kBalanceMost}),
      number_setting(
          {"probe", kWaiting, kMore, "share of stragglers that finish, to measure their run-time"},
          [](auto& job) -> auto& { return job.waiting.probe; }, {0.0, 1.0}),
      choice_setting(
          {"guard", kWaiting, kMore,
           "gradients with too large a norm: off (used), norm (clipped) or refuse"},
          [](auto& job) -> auto& { return job.learning.guard; }, guard_rule_name, parse_guard_rule),
      number_setting({"guard_factor", kWaiting, kJobFile,
                      "with guard: standard deviations above the typical norm that are too large"},
                     [](auto& job) -> auto& { return job.learning.guard_factor; },
                     {kGuardFactorMin, kGuardFactorMax}),
      switch_setting(
          {"deterministic", kWaiting, kMain,
           "sum in the order of workers; equal seeds give equal results, bit for bit"},
          [](auto& job) -> auto& { return job.learning.deterministic; }),
      setting_of({"slow", kWaiting, kMain,
                  "slow workers down: worker=3,factor=4 or share=0.05,delay=200ms"},
                 SettingKind::kTexts, slow_texts, set_slow),

      text_setting(
          {"run_file", kRecord, kMain, "record of the run (default: runs/TIME-MODEL-DATA.db)"},
          [](auto& job) -> auto& { return job.record.run_file; }, MayBeEmpty::kYes),
      text_setting(
          {"save_model", kRecord, kMain, "file for the final parameters"},
          [](auto& job) -> auto& { return job.record.save_model; }, MayBeEmpty::kYes),

      text_setting(
          {"checkpoint", kRecord, kMain, "folder for checkpoints"},
          [](auto& job) -> auto& { return job.record.checkpoint; }, MayBeEmpty::kYes),
      count_setting(
          {"checkpoint_every", kRecord, kMain, "steps between checkpoints"},
          [](auto& job) -> auto& { return job.record.checkpoint_every; }, 1, kStepsMax),
      count_setting(
          {"keep", kRecord, kMore, "number of checkpoints to keep"},
          [](auto& job) -> auto& { return job.record.keep; }, 1, kKeepMax),
      text_setting(
          {"resume", kRecord, kMain, "continue from the newest checkpoint in this folder"},
          [](auto& job) -> auto& { return job.record.resume; }, MayBeEmpty::kYes),
      switch_setting(
          {"supervise", kRecord, kMain,
           "restart processes that die, and continue from the newest checkpoint"},
          [](auto& job) -> auto& { return job.cluster.supervise; }),
      switch_setting(
          {"standby", kRecord, kMore,
           "run a standby for each shard, to lose no step (implies --supervise)"},
          [](auto& job) -> auto& { return job.cluster.standby; }),
  };
}

}  // namespace

const std::vector<Setting>& job_settings() {
  static const std::vector<Setting> settings = make_settings();
  return settings;
}

const Setting* find_setting(std::string_view key) {
  const auto& all = job_settings();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Setting& each) { return each.key == key; });
  return found == all.end() ? nullptr : &*found;
}

std::string flag_of(const Setting& setting) {
  std::string flag = "--" + std::string(setting.key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string key_and_flag(const Setting& setting) {
  if (setting.listing == Listing::kJobFile) return std::string(setting.key);
  return fmt::format("{} ({})", setting.key, flag_of(setting));
}

std::string_view name_of(SettingGroup group) {
  switch (group) {
    case SettingGroup::kTask:
      return "Task";
    case SettingGroup::kLearning:
      return "Optimizer and learning rate";
    case SettingGroup::kProcesses:
      return "Processes";
    case SettingGroup::kWaiting:
      return "Stragglers";
    case SettingGroup::kRecord:
      return "Record and recovery";
  }
  return "";
}

std::string_view words_for(SettingKind kind) {
  switch (kind) {
    case SettingKind::kSwitch:
      return "true or false";
    case SettingKind::kCount:
      return "a whole number";
    case SettingKind::kNumber:
      return "a number";
    case SettingKind::kText:
      return "text";
    case SettingKind::kTexts:
      return "a list of texts";
  }
  return "";
}

}  // namespace drover

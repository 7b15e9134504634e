#include "job/settings.h"

#include <fmt/format.h>

#include "core/duration_text.h"
#include "job/setting_kinds.h"
#include "job/setting_values.h"
#include "policy/catalogue.h"
#include "wire/limits.h"

namespace drover {
namespace {

constexpr std::string_view kTask = "What to train";
constexpr std::string_view kProcesses = "Processes";
constexpr std::string_view kLearning = "How it learns";
constexpr std::string_view kWaiting = "How long to wait";
constexpr std::string_view kRecord = "What is kept";

constexpr NumberRange kDecay = {0.0, 1.0, false, true};
constexpr NumberRange kRate = {0.0, kLearningRateMax, true, false};

std::string_view text_itself(const std::string& text) { return text; }

// NOLINTNEXTLINE(readability-function-size): a list, read from top to bottom.
std::vector<Setting> make_settings() {
  return {
      text_setting(
          {"model", "--model", kTask,
           "logistic, mlp, mlp25m, lenet, lenet-wide, resnet20 or transformer"},
          [](auto& job) -> auto& { return job.task.model; }, MayBeEmpty::kNo),
      text_setting(
          {"data", "--data", kTask, "a data set's name, or a folder or file"},
          [](auto& job) -> auto& { return job.task.data; }, MayBeEmpty::kNo),
      text_setting(
          {"data_dir", "--data-dir", kTask, "where data sets are kept; empty: the usual places"},
          [](auto& job) -> auto& { return job.task.data_dir; }, MayBeEmpty::kYes),
      count_setting(
          {"generated_samples", "--generated-samples", kTask, "samples of the generated data set"},
          [](auto& job) -> auto& { return job.task.generated_samples; }, 1, kGeneratedSamplesMax),
      count_setting(
          {"seed", "--seed", kTask, "all chance follows from it"},
          [](auto& job) -> auto& { return job.task.seed; }, 0, kSeedMax),
      count_setting(
          {"steps", "--steps", kTask, "updates of the parameters"},
          [](auto& job) -> auto& { return job.steps; }, 1, kStepsMax),
      count_setting(
          {"batch", "--batch", kTask, "samples of one worker in one step"},
          [](auto& job) -> auto& { return job.batch; }, 1, kSamplesMax),
      count_setting(
          {"micro_batch", "--micro-batch", kTask,
           "compute a gradient in pieces of so many samples: less memory, sooner stopped; 0: "
           "whole"},
          [](auto& job) -> auto& { return job.task.micro_batch; }, 0, kSamplesMax),
      choice_setting(
          {"partition", "--partition", kTask,
           "samples of each worker: none (of all the data), random or label (an n-th of its own)"},
          [](auto& job) -> auto& { return job.task.partition; }, partition_name, parse_partition),
      count_setting(
          {"evaluate_every", "--evaluate-every", kTask,
           "steps between evaluations; 0: only at the end"},
          [](auto& job) -> auto& { return job.record.evaluate_every; }, 0, kStepsMax),
      choice_setting(
          {"stop_at", "--stop-at", kTask,
           "end when an evaluation reaches it: accuracy=0.97 or loss=0.2; empty: after all steps"},
          [](auto& job) -> auto& { return job.record.stop_at; }, stop_at_text, parse_stop_at),

      count_setting(
          {"workers", "--workers", kProcesses, "processes that compute gradients"},
          [](auto& job) -> auto& { return job.cluster.workers; }, 1, kWorkersMax),
      count_setting(
          {"workers_max", "--workers-max", kProcesses,
           "of those, with others that join later (drover worker); 0: nobody joins"},
          [](auto& job) -> auto& { return job.cluster.workers_max; }, 0, kWorkersMax),
      count_setting(
          {"shards", "--shards", kProcesses, "server processes that share the parameters"},
          [](auto& job) -> auto& { return job.cluster.shards; }, 1, kShardsMax),
      choice_setting(
          {"transport", "--transport", kProcesses,
           "auto, shm (memory of one machine), uds (its sockets), tcp, or mpi: under mpirun or "
           "srun, "
           "blocks as MPI messages; a run that loses a rank ends, and --resume goes on"},
          [](auto& job) -> auto& { return job.cluster.transport; }, transport_name,
          parse_transport),
      choice_setting(
          {"wire_dtype", "--wire-dtype", kProcesses,
           "gradients on sockets as float32, bfloat16 or float16"},
          [](auto& job) -> auto& { return job.cluster.wire_dtype; }, number_type_name,
          parse_number_type),
      choice_setting(
          {"listen", "--listen", kProcesses,
           "the coordinator's address with tcp; port 0: any free one"},
          [](auto& job) -> auto& { return job.cluster.listen; }, text_itself, parse_address),
      text_setting(
          {"tls", "--tls", kProcesses,
           "folder of `drover keys make`: encrypt what goes over tcp; empty: do not"},
          [](auto& job) -> auto& { return job.cluster.tls; }, MayBeEmpty::kYes),
      switch_setting(
          {"insecure", "--insecure", kProcesses,
           "listen where others can reach it without tls, on a network that is trusted"},
          [](auto& job) -> auto& { return job.cluster.insecure; }),
      count_setting(
          {"window", "--window", kProcesses,
           "bytes of gradients under way to one shard at once, at most; fewer while packets get "
           "lost"},
          [](auto& job) -> auto& { return job.cluster.window; }, 1, kWindowMax),

      choice_setting(
          {"policy", "--policy", kWaiting,
           "how long a step waits: sync, static:0.9, ...; see drover policies"},
          [](auto& job) -> auto& { return job.waiting.policy; }, text_itself, parse_policy),
      choice_setting(
          {"objective", "--objective", kWaiting,
           "what policies with a forecast maximise: throughput, rate or goodput"},
          [](auto& job) -> auto& { return job.waiting.objective; },
          [](Objective objective) { return name_of(objective); }, parse_objective),
      count_setting(
          {"policy_warmup", "--policy-warmup", kWaiting,
           "steps in which policies that learn wait for everybody"},
          [](auto& job) -> auto& { return job.waiting.policy_warmup; }, 0, kStepsMax),
      count_setting(
          {"min_contributors", "--min-contributors", kWaiting,
           "gradients that every step waits for, as far as workers are alive"},
          [](auto& job) -> auto& { return job.waiting.min_contributors; }, 1, kWorkersMax),
      choice_setting(
          {"max_wait", "--max-wait", kWaiting,
           "longest wait of a step that has min_contributors, e.g. 10s; none: no limit"},
          [](auto& job) -> auto& { return job.waiting.max_wait; }, max_wait_text, parse_max_wait),
      number_setting({"min_inclusion", "--min-inclusion", kWaiting,
                      "share of steps that each worker should be part of; 0: any"},
                     [](auto& job) -> auto& { return job.waiting.min_inclusion; }, {0.0, 1.0}),
      choice_setting(
          {"pull", "--pull", kWaiting,
           "share of the blocks of parameters that a worker waits for before it begins, or auto"},
          [](auto& job) -> auto& { return job.waiting.pull; }, pull_text, parse_pull),
      choice_setting(
          {"pull_grace", "--pull-grace", kWaiting,
           "with pull: how much longer it waits for the others, e.g. 5ms"},
          [](auto& job) -> auto& { return job.waiting.pull_grace; }, duration_text, parse_grace),
      choice_setting(
          {"push_grace", "--push-grace", kWaiting,
           "how much longer a block that has enough gradients waits for others, e.g. 5ms"},
          [](auto& job) -> auto& { return job.waiting.push_grace; }, duration_text, parse_grace),
      choice_setting(
          {"stragglers", "--stragglers", kWaiting,
           "whom a step did not wait for: stop (start on the next one) or finish"},
          [](auto& job) -> auto& { return job.waiting.stragglers; }, straggler_rule_name,
          parse_straggler_rule),
      switch_setting(
          {"live", "--live", kWaiting,
           "decide again inside each step, as gradients arrive (policies with a forecast)"},
          [](auto& job) -> auto& { return job.waiting.live; }),
      choice_setting(
          {"decide_every", "--decide-every", kWaiting,
           "steps that a decision holds for, or auto: as long as nothing changes"},
          [](auto& job) -> auto& { return job.waiting.decide_every; }, decide_every_text,
          parse_decide_every),
      switch_setting(
          {"balance", "--balance", kWaiting,
           "give each worker a mini-batch in proportion to its speed; batch is the mean"},
          [](auto& job) -> auto& { return job.waiting.balance; }),
      number_setting({"balance_least", "--balance-least", kWaiting,
                      "with balance: share of batch that every worker gets"},
                     [](auto& job) -> auto& { return job.waiting.balance_least; },
                     {0.0, 1.0, true, false}),
      number_setting({"balance_most", "--balance-most", kWaiting,
                      "with balance: share of batch that no worker gets more than"},
                     [](auto& job) -> auto& { return job.waiting.balance_most; },
                     {1.0, kBalanceMost}),
      number_setting({"probe", "--probe", kWaiting,
                      "share of stragglers that finish all the same, to show how long they take"},
                     [](auto& job) -> auto& { return job.waiting.probe; }, {0.0, 1.0}),
      choice_setting(
          {"guard", "--guard", kWaiting,
           "gradients that are far too long: off (used), norm (made as short as is usual) or "
           "refuse"},
          [](auto& job) -> auto& { return job.learning.guard; }, guard_rule_name, parse_guard_rule),
      number_setting({"guard_factor", "--guard-factor", kWaiting,
                      "with guard: too long is so many deviations above the usual length"},
                     [](auto& job) -> auto& { return job.learning.guard_factor; },
                     {kGuardFactorMin, kGuardFactorMax}),
      switch_setting(
          {"deterministic", "--deterministic", kWaiting,
           "sum in the order of workers, so that a run repeats bit for bit"},
          [](auto& job) -> auto& { return job.learning.deterministic; }),
      setting_of(
          {"slow", "--slow", kWaiting,
           "make workers slower on purpose, e.g. worker=3,factor=4 or share=0.05,delay=200ms"},
          SettingKind::kTexts, slow_texts, set_slow),

      text_setting(
          {"run_file", "--run-file", kRecord,
           "the run's record; empty: runs/<time>-<model>-<data>.db"},
          [](auto& job) -> auto& { return job.record.run_file; }, MayBeEmpty::kYes),
      text_setting(
          {"save_model", "--save-model", kRecord,
           "where to write the final parameters; empty: nowhere"},
          [](auto& job) -> auto& { return job.record.save_model; }, MayBeEmpty::kYes),

      text_setting(
          {"checkpoint", "--checkpoint", kRecord,
           "folder for checkpoints, from which the run can go on; empty: none"},
          [](auto& job) -> auto& { return job.record.checkpoint; }, MayBeEmpty::kYes),
      count_setting(
          {"checkpoint_every", "--checkpoint-every", kRecord,
           "steps between checkpoints; there is also one at the end"},
          [](auto& job) -> auto& { return job.record.checkpoint_every; }, 1, kStepsMax),
      count_setting(
          {"keep", "--keep", kRecord, "checkpoints to keep; older ones are removed"},
          [](auto& job) -> auto& { return job.record.keep; }, 1, kKeepMax),
      text_setting(
          {"resume", "--resume", kRecord,
           "go on from the newest checkpoint in this folder, or from this one"},
          [](auto& job) -> auto& { return job.record.resume; }, MayBeEmpty::kYes),
      switch_setting(
          {"supervise", "--supervise", kRecord,
           "start again who is killed, and go on from the newest checkpoint"},
          [](auto& job) -> auto& { return job.cluster.supervise; }),
      switch_setting(
          {"standby", "--standby", kRecord,
           "a second process for each shard keeps all that it makes and takes over when it is "
           "lost: no step is "
           "lost, no checkpoint read; with it goes --supervise"},
          [](auto& job) -> auto& { return job.cluster.standby; }),

      choice_setting(
          {"optimizer.kind", "--optimizer", kLearning,
           "sgd, momentum, nesterov, rmsprop, adam or adamw"},
          [](auto& job) -> auto& { return job.learning.optimizer.kind; },
          [](OptimizerKind kind) { return name_of(kind); }, parse_optimizer),
      number_setting(
          {"optimizer.momentum", "--momentum", kLearning, "of momentum and nesterov"},
          [](auto& job) -> auto& { return job.learning.optimizer.momentum; }, kDecay),
      number_setting({"optimizer.weight_decay", "--weight-decay", kLearning,
                      "added to the gradient; with adamw apart from it"},
                     [](auto& job) -> auto& { return job.learning.optimizer.weight_decay; },
                     {0.0, kWeightDecayMax}),
      number_setting(
          {"optimizer.ema_decay", "--ema", kLearning,
           "decay of the averaged parameters that are evaluated; 0: no averaging"},
          [](auto& job) -> auto& { return job.learning.optimizer.ema_decay; }, kDecay),
      number_setting(
          {"optimizer.beta1", "--beta1", kLearning, "of adam and adamw"},
          [](auto& job) -> auto& { return job.learning.optimizer.beta1; }, kDecay),
      number_setting(
          {"optimizer.beta2", "--beta2", kLearning, "of adam and adamw"},
          [](auto& job) -> auto& { return job.learning.optimizer.beta2; }, kDecay),
      number_setting({"optimizer.epsilon", "--epsilon", kLearning, "of rmsprop, adam and adamw"},
                     [](auto& job) -> auto& { return job.learning.optimizer.epsilon; },
                     {0.0, 1.0, true, false}),
      number_setting(
          {"optimizer.rms_decay", "--rms-decay", kLearning, "of rmsprop"},
          [](auto& job) -> auto& { return job.learning.optimizer.rms_decay; }, kDecay),
      number_setting(
          {"optimizer.rms_momentum", "--rms-momentum", kLearning, "of rmsprop"},
          [](auto& job) -> auto& { return job.learning.optimizer.rms_momentum; }, kDecay),

      choice_setting(
          {"schedule.kind", "--schedule", kLearning, "constant, step or cosine"},
          [](auto& job) -> auto& { return job.learning.schedule.kind; },
          [](ScheduleKind kind) { return name_of(kind); }, parse_schedule),
      number_setting(
          {"schedule.lr", "--lr", kLearning, "learning rate after the warm-up"},
          [](auto& job) -> auto& { return job.learning.schedule.base; }, kRate),
      count_setting(
          {"schedule.warmup_steps", "--warmup", kLearning,
           "steps in which the learning rate rises to lr"},
          [](auto& job) -> auto& { return job.learning.schedule.warmup_steps; }, 0, kStepsMax),
      count_setting(
          {"schedule.decay_every", "--decay-every", kLearning,
           "with step: multiply by decay_factor each so many steps"},
          [](auto& job) -> auto& { return job.learning.schedule.decay_every; }, 0, kStepsMax),
      number_setting({"schedule.decay_factor", "--decay-factor", kLearning, "with step"},
                     [](auto& job) -> auto& { return job.learning.schedule.decay_factor; },
                     {0.0, 1.0, true, false}),
      number_setting(
          {"schedule.floor", "--lr-floor", kLearning, "with cosine: the learning rate at the end"},
          [](auto& job) -> auto& { return job.learning.schedule.floor; }, {0.0, kLearningRateMax}),
      choice_setting(
          {"schedule.rule", "--lr-rule", kLearning,
           "the learning rate when a step has fewer samples: none, linear, sqrt or adascale"},
          [](auto& job) -> auto& { return job.learning.schedule.rule; },
          [](RateRule rule) { return name_of(rule); }, parse_rate_rule),
  };
}

}  // namespace

const std::vector<Setting>& job_settings() {
  static const std::vector<Setting> settings = make_settings();
  return settings;
}

std::string_view table_of(const Setting& setting) {
  const size_t dot = setting.key.find('.');
  return dot == std::string_view::npos ? std::string_view() : setting.key.substr(0, dot);
}

std::string_view name_of(const Setting& setting) {
  return setting.key.substr(setting.key.find('.') + 1);  // npos + 1 is 0: the whole key
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

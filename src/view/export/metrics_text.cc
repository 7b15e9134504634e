#include "view/export/metrics_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

#include "core/version.h"
#include "store/schema.h"

namespace drover {
namespace {

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0.0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

// A label with its value, in which backslash, quote and newline are escaped.
std::string label(std::string_view name, std::string_view value) {
  std::string text = std::string(name) + "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text + '"';
}

class Exposition {
 public:
  // Begins a family; its samples must follow.
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  }
  void sample(double value, std::string_view labels = "") { sample("", value_text(value), labels); }
  void sample(uint64_t value, std::string_view labels = "") {
    sample("", fmt::format("{}", value), labels);
  }

  template <typename Value>
  void counter(std::string_view name, std::string_view help, Value value) {
    family(name, "counter", help);
    sample(value);
  }
  void gauge(std::string_view name, std::string_view help, std::optional<double> value) {
    if (!value) return;
    family(name, "gauge", help);
    sample(*value);
  }
  void histogram(std::string_view name, std::string_view help, const SecondsHistogram& values) {
    family(name, "histogram", help);
    uint64_t below = 0;
    for (size_t i = 0; i < values.counts.size(); ++i) {
      below += values.counts[i];
      const bool last = i == values.upper_bounds.size();
      const std::string bound = last ? "+Inf" : value_text(values.upper_bounds[i]);
      sample("_bucket", fmt::format("{}", below), label("le", bound));
    }
    sample("_sum", value_text(values.sum), "");
    sample("_count", fmt::format("{}", below), "");
  }

  std::string take() { return std::move(text_); }

 private:
  void sample(std::string_view ending, const std::string& value, std::string_view labels) {
    text_ += name_;
    text_ += ending;
    if (!labels.empty()) fmt::format_to(std::back_inserter(text_), "{{{}}}", labels);
    fmt::format_to(std::back_inserter(text_), " {}\n", value);
  }

  std::string text_;
  std::string name_;
};

void add_run(Exposition& text, const RunTables& run) {
  text.family("drover_build_info", "gauge", "Version of drover; always 1.");
  text.sample(uint64_t{1}, label("version", kVersion));
  text.family("drover_run_info", "gauge", "Identity of the run; always 1.");
  text.sample(uint64_t{1}, fmt::format("{},{},{},{}", label("run_id", to_hex(run.header.run_id)),
                                       label("policy", run.setting("policy")),
                                       label("model", run.setting("model")),
                                       label("data", run.setting("data"))));
  text.family("drover_run_state", "gauge", "1 for the current state of the run, 0 for the others.");
  constexpr std::array kStates = {RunOutcome::kRunning, RunOutcome::kCompleted,
                                  RunOutcome::kInterrupted, RunOutcome::kFailed};
  for (const RunOutcome state : kStates)
    text.sample(uint64_t{state == run.end.outcome ? 1U : 0U}, label("state", name_of(state)));
}

void add_steps(Exposition& text, const RecordedRun& run, const RunAggregate& sums) {
  const GradientTotals& gradients = sums.gradients();
  text.counter("drover_steps_total", "Steps that have closed.", sums.step_count());
  if (const std::optional<uint64_t> planned = run.tables().steps_planned()) {
    text.gauge("drover_steps_planned", "Planned number of steps.", static_cast<double>(*planned));
  }
  text.counter("drover_samples_total", "Samples used in updates.", gradients.samples);
  text.counter("drover_gradients_used_total", "Whole gradients used in updates.", gradients.used);
  text.counter("drover_gradients_late_total", "Gradients that arrived after their step had closed.",
               gradients.late);
  text.counter("drover_gradients_refused_total",
               "Gradients refused because they contain NaN or infinity.", gradients.refused);
  text.histogram("drover_step_seconds",
                 "Time from the opening of a step until its last block closed.",
                 sums.step_times().elapsed_counts);
  text.histogram("drover_deciding_seconds",
                 "Time that a step that could have closed waited for a decision.",
                 sums.step_times().deciding_counts);
  text.counter("drover_aggregate_seconds_total",
               "Time of the slowest shard for summing and updating.", sums.time().aggregate_s);
  // A counter must not decrease. Late arrivals can still change the last steps, so these are
  // omitted.
  text.counter("drover_saved_seconds_total",
               "Time saved vs. synchronous (lower bound); while the run is in progress, without "
               "the newest steps (at most 64).",
               run.ended() ? sums.time().saved_s : run.settled().time().saved_s);
}

void add_decision(Exposition& text, const DecisionRecord* newest) {
  if (newest != nullptr) {
    text.gauge("drover_cutoff", "Number of gradients to wait for, by the newest decision.",
               newest->cutoff);
    text.gauge("drover_workers_alive", "Workers that could contribute at the newest decision.",
               newest->alive);
  }
  text.gauge("drover_model_stale",
             "1 while the learned model of run-times is disabled because it is stale.",
             newest != nullptr && newest->model_stale ? 1.0 : 0.0);
}

void add_learning(Exposition& text, const RecordedRun& run, const RunAggregate& sums) {
  text.gauge("drover_loss", "Training loss of the newest step.", sums.newest().loss);
  text.gauge("drover_train_accuracy", "Training accuracy of the newest step, 0 to 1.",
             sums.newest().accuracy);
  text.gauge("drover_learning_rate", "Learning rate of the newest step.",
             sums.newest().learning_rate);
  if (run.tables().evaluations.empty()) return;
  const EvaluationRecord& newest = run.tables().evaluations.back();
  text.gauge("drover_test_loss", "Loss on the test data in the newest evaluation.", newest.loss);
  text.gauge("drover_test_accuracy", "Accuracy on the test data in the newest evaluation, 0 to 1.",
             newest.accuracy);
}

void add_workers(Exposition& text, const RecordedRun& run, const RunAggregate& sums) {
  text.counter("drover_workers_lost_total", "Losses of workers.",
               run.tables().worker_states.losses());
  if (sums.step_count() == 0) return;
  const auto family = [&](std::string_view name, std::string_view type, std::string_view help,
                          auto value) {
    text.family(name, type, help);
    for (WorkerId worker = 0; worker < sums.workers().size(); ++worker) {
      const WorkerTotals& own = sums.workers()[worker];
      if (own.steps > 0) text.sample(value(own), label("worker", fmt::format("{}", worker)));
    }
  };
  family("drover_worker_steps_total", "counter", "Steps in which the worker could take part.",
         [](const WorkerTotals& own) { return own.steps; });
  family("drover_worker_late_total", "counter",
         "Steps that closed before the worker's gradient arrived.",
         [](const WorkerTotals& own) { return own.missed(); });
  family("drover_worker_last_total", "counter",
         "Steps in which the worker was the last one in time.",
         [](const WorkerTotals& own) { return own.last; });
  family("drover_worker_inclusion_ratio", "gauge",
         "Share of the worker's steps in which its gradient was in time, over the whole run.",
         [](const WorkerTotals& own) { return own.inclusion(); });
}

}  // namespace

std::string metrics_text(const RecordedRun& run) {
  const RunAggregate sums = run.aggregate();
  Exposition text;
  add_run(text, run.tables());
  add_steps(text, run, sums);
  add_decision(text, run.newest_decision());
  add_learning(text, run, sums);
  add_workers(text, run, sums);
  return text.take();
}

}  // namespace drover

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

// A label with its value, in which \, " and the end of a line have to be escaped.
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
  // All samples of a family follow it.
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

void add_run(Exposition& text, const RunMetrics& metrics) {
  text.family("drover_build_info", "gauge", "Which drover it is; always 1.");
  text.sample(uint64_t{1}, label("version", kVersion));
  text.family("drover_run_info", "gauge", "Which run it is; always 1.");
  text.sample(uint64_t{1}, fmt::format("{},{},{},{}", label("run_id", metrics.run_id),
                                       label("policy", metrics.policy),
                                       label("model", metrics.model), label("data", metrics.data)));
  text.family("drover_run_state", "gauge", "1 for the state that the run is in, 0 for the others.");
  constexpr std::array kStates = {RunOutcome::kRunning, RunOutcome::kCompleted,
                                  RunOutcome::kInterrupted, RunOutcome::kFailed};
  for (const RunOutcome state : kStates)
    text.sample(uint64_t{state == metrics.outcome ? 1U : 0U}, label("state", name_of(state)));
}

void add_steps(Exposition& text, const RunMetrics& metrics) {
  text.counter("drover_steps_total", "Steps that have closed.", metrics.steps);
  if (metrics.steps_planned) {
    text.gauge("drover_steps_planned", "Steps that the run is to take.",
               static_cast<double>(*metrics.steps_planned));
  }
  text.counter("drover_samples_total", "Samples behind updates.", metrics.samples);
  text.counter("drover_gradients_used_total", "Whole gradients that went into updates.",
               metrics.used);
  text.counter("drover_gradients_late_total", "Gradients that came after their step had closed.",
               metrics.late);
  text.counter("drover_gradients_refused_total", "Gradients refused for holding NaN or infinity.",
               metrics.refused);
  text.histogram("drover_step_seconds", "From a step's opening until its last block closed.",
                 metrics.step_seconds);
  text.histogram("drover_deciding_seconds",
                 "How long a step that could have closed waited for a decision.",
                 metrics.deciding_seconds);
  text.counter("drover_aggregate_seconds_total",
               "Time of the slowest shard for summing and updating.", metrics.aggregate_seconds);
  text.counter("drover_saved_seconds_total",
               "Time saved against waiting for everybody, at least, without the newest 50 steps.",
               metrics.saved_seconds);
}

void add_learning(Exposition& text, const RunMetrics& metrics) {
  const auto number = [](const std::optional<uint32_t>& value) {
    return value ? std::optional<double>(*value) : std::nullopt;
  };
  text.gauge("drover_cutoff", "Gradients that the newest decision waits for.",
             number(metrics.cutoff));
  text.gauge("drover_workers_alive", "Workers that could contribute at the newest decision.",
             number(metrics.alive));
  text.gauge("drover_model_stale",
             "1 while the learned model of run-times has gone stale and stands back.",
             metrics.model_stale ? 1.0 : 0.0);
  text.gauge("drover_loss", "Training loss of the newest step.", metrics.loss);
  text.gauge("drover_train_accuracy",
             "Share of the newest step's samples that were predicted right, 0 to 1.",
             metrics.accuracy);
  text.gauge("drover_learning_rate", "Used in the newest step.", metrics.learning_rate);
  text.gauge("drover_test_loss", "Loss on the test data, of the newest evaluation.",
             metrics.test_loss);
  text.gauge("drover_test_accuracy",
             "Share of the test data predicted right in the newest evaluation, 0 to 1.",
             metrics.test_accuracy);
}

void add_workers(Exposition& text, const RunMetrics& metrics) {
  text.counter("drover_workers_lost_total", "Times that a worker was lost.", metrics.lost);
  if (metrics.workers.empty()) return;
  const auto family = [&](std::string_view name, std::string_view type, std::string_view help,
                          auto value) {
    text.family(name, type, help);
    for (const auto& [worker, counts] : metrics.workers)
      text.sample(value(counts), label("worker", fmt::format("{}", worker)));
  };
  family("drover_worker_steps_total", "counter", "Steps that the worker could take part in.",
         [](const WorkerCounts& counts) { return counts.steps; });
  family("drover_worker_late_total", "counter",
         "Steps that closed before the worker's gradient was there.",
         [](const WorkerCounts& counts) { return counts.late; });
  family("drover_worker_last_total", "counter", "Steps for which the worker was waited for last.",
         [](const WorkerCounts& counts) { return counts.last; });
  family("drover_worker_inclusion_ratio", "gauge",
         "Share of its steps in which the worker's gradient was in time, over the whole run.",
         [](const WorkerCounts& counts) {
           return 1.0 - static_cast<double>(counts.late) / static_cast<double>(counts.steps);
         });
}

}  // namespace

std::string metrics_text(const RunMetrics& metrics) {
  Exposition text;
  add_run(text, metrics);
  add_steps(text, metrics);
  add_learning(text, metrics);
  add_workers(text, metrics);
  return text.take();
}

Result<std::string> MetricsPage::text() {
  if (!metrics_) {
    auto reader = RunReader::open(run_file_);
    if (!reader) return reader.error();
    reader_ = std::make_unique<RunReader>(std::move(reader).value());
    metrics_ = std::make_unique<MetricsReader>(*reader_);
  }
  if (const Status status = metrics_->read_new(); !status) return status.error();
  return metrics_text(metrics_->metrics());
}

}  // namespace drover

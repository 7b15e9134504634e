#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <iterator>

#include "core/text.h"
#include "store/schema.h"
#include "view/report.h"

namespace drover {
namespace {

// Text escaped for a cell of a table.
std::string cell(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '_' || c == '<' || c == '[')
      safe += '\\';
    safe += c == '\n' || c == '\r' ? ' ' : c;
  }
  return safe.empty() ? "-" : safe;
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.4g}", value) : "-";
}

std::string time(double value) {
  if (!std::isfinite(value)) return "-";
  if (value >= 1.0 || value == 0.0) return fmt::format("{:.4g} s", value);
  return value >= 1e-3 ? fmt::format("{:.3g} ms", value * 1e3)
                       : fmt::format("{:.3g} µs", value * 1e6);
}

std::string state(const RunSnapshot& run) {
  std::string text(name_of(run.end.outcome));
  if (run.end.outcome == RunOutcome::kRunning) return "not ended";
  return run.end.reason.empty() ? text : text + ": " + run.end.reason;
}

std::string saved(const RunSnapshot& run) {
  const PageTotals& totals = run.totals;
  if (!(totals.wait_all_s > 0.0)) return "-";
  std::string text = fmt::format("{}{} ({:.3g} %)", totals.saved_exact ? "" : "at least ",
                                 time(totals.saved_s), 100.0 * totals.saved_s / totals.wait_all_s);
  if (std::isfinite(totals.saved_about_s)) {
    text += fmt::format(", about {} ({:.3g} %) by forecast", time(totals.saved_about_s),
                        100.0 * totals.saved_about_s / (totals.waited_s + totals.saved_about_s));
  }
  return text;
}

using Cell = std::function<std::string(const RunSnapshot&)>;

const std::vector<std::pair<std::string_view, Cell>>& table_rows() {
  static const std::vector<std::pair<std::string_view, Cell>> rows = {
      {"outcome", [](const auto& run) { return state(run); }},
      {"model", [](const auto& run) { return run.setting("model"); }},
      {"data", [](const auto& run) { return run.setting("data"); }},
      {"policy", [](const auto& run) { return run.setting("policy"); }},
      {"seed", [](const auto& run) { return run.setting("seed"); }},
      {"workers", [](const auto& run) { return std::to_string(run.workers); }},
      {"steps",
       [](const auto& run) {
         const RunProgress& progress = run.progress;
         return !progress.steps || progress.step == *progress.steps
                    ? with_commas(progress.step)
                    : fmt::format("{} of {}", with_commas(progress.step),
                                  with_commas(*progress.steps));
       }},
      {"time", [](const auto& run) { return time(run.progress.elapsed_s); }},
      {"steps per second", [](const auto& run) { return number(run.progress.steps_per_s); }},
      {"step time, median", [](const auto& run) { return time(run.totals.step_median_s); }},
      {"step time, 90th percentile", [](const auto& run) { return time(run.totals.step_p90_s); }},
      {"training loss", [](const auto& run) { return number(run.totals.loss); }},
      {"test loss", [](const auto& run) { return number(run.totals.test_loss); }},
      {"test accuracy", [](const auto& run) { return percent(run.totals.test_accuracy, 2); }},
      {"gradients per step", [](const auto& run) { return number(run.totals.contributors_mean); }},
      {"late gradients", [](const auto& run) { return with_commas(run.totals.late); }},
      {"time saved vs. synchronous", [](const auto& run) { return saved(run); }},
  };
  return rows;
}

// A code block with a fence that does not occur in `text`.
std::string fenced(const std::string& text, std::string_view language) {
  std::string fence = "```";
  while (text.find(fence) != std::string::npos) fence += '`';
  return fmt::format("{}{}\n{}{}{}\n", fence, language, text,
                     text.empty() || text.back() == '\n' ? "" : "\n", fence);
}

}  // namespace

std::string report_markdown(const std::vector<ReportedRun>& runs, const ReportFacts& facts) {
  std::string text =
      fmt::format("# Drover: report of {} run{}\n\n|  |", runs.size(), runs.size() == 1 ? "" : "s");
  const auto out = std::back_inserter(text);
  for (const ReportedRun& run : runs) fmt::format_to(out, " {} |", cell(run.snapshot.file));
  text += "\n|---|";
  for (size_t i = 0; i < runs.size(); ++i) text += "---|";
  text += "\n";
  for (const auto& [name, value] : table_rows()) {
    fmt::format_to(out, "| {} |", name);
    for (const ReportedRun& run : runs) fmt::format_to(out, " {} |", cell(value(run.snapshot)));
    text += "\n";
  }
  text += "\n## How to reproduce\n";
  for (const ReportedRun& run : runs) {
    const RunHeader& header = run.snapshot.header;
    fmt::format_to(out, "\n{}, started {}:\n\n{}", cell(run.snapshot.file), cell(header.started),
                   fenced(header.command, "sh"));
    if (!run.snapshot.warning.empty())
      fmt::format_to(out, "\nNote: {}\n", cell(run.snapshot.warning));
    // The job is only a part of a simulated run.
    if (const std::string scenario = run.snapshot.environment("scenario"); !scenario.empty()) {
      fmt::format_to(out, "\nScenario, for `drover simulate SCENARIO.toml`:\n\n{}",
                     fenced(scenario, "toml"));
    } else if (!header.job.empty()) {
      fmt::format_to(out, "\nJob, for `drover train JOB.toml`:\n\n{}", fenced(header.job, "toml"));
    }
  }
  fmt::format_to(out, "\nCreated {} with:\n\n{}", cell(facts.made), fenced(facts.command, "sh"));
  return text;
}

}  // namespace drover

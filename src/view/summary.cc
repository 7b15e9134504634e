#include "view/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/event_text.h"
#include "core/text.h"
#include "store/schema.h"

namespace drover {
namespace {

constexpr uint32_t kCurvePoints = 40;
constexpr size_t kWorkersShown = 3;
constexpr size_t kLossesShown = 2;
constexpr size_t kStragglersShown = 3;
constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

double per_second(uint64_t amount, double seconds) {
  return seconds > 0.0 ? static_cast<double>(amount) / seconds : std::nan("");
}

std::string setting(const RunHeader& header, std::string_view key) {
  for (const auto& [name, value] : header.settings) {
    if (name == key) return value;
  }
  return {};
}

// Three or four digits that matter: "81,234", "812", "81.2", "0.812".
std::string amount(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "-" : "infinity";
  if (value >= 100.0 && value < 1e18)
    return with_commas(static_cast<uint64_t>(std::llround(value)));
  return fmt::format("{:.3g}", value);
}

std::string short_time(Duration duration) {
  const double value = seconds(duration);
  const double size = std::abs(value);
  if (size >= 1.0) return fmt::format("{:.2f} s", value);
  if (size >= 1e-3) return fmt::format("{:.3g} ms", value * 1e3);
  return fmt::format("{:.3g} µs", value * 1e6);
}

std::string long_time(double value) {
  if (!std::isfinite(value)) return "-";
  if (value < 120.0) return fmt::format("{:.3g} s", value);
  const auto whole = static_cast<uint64_t>(value);
  if (whole < 7200) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string bytes(uint64_t value) {
  const double size = static_cast<double>(value);
  if (size >= 1e9) return fmt::format("{:.2f} GB", size / 1e9);
  return fmt::format("{:.0f} MB", size / 1e6);
}

std::string plural(uint64_t number, std::string_view word) {
  return fmt::format("{} {}{}", with_commas(number), word, number == 1 ? "" : "s");
}

class Lines {
 public:
  void add(std::string_view label, std::string_view text) {
    fmt::format_to(std::back_inserter(text_), "{:<11}{}\n", label, text);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string outcome_line(const RunSummary& summary) {
  if (summary.outcome == RunOutcome::kRunning) return summary.reason;
  const std::string_view name = name_of(summary.outcome);
  if (summary.reason.empty()) return std::string(name);
  if (summary.outcome == RunOutcome::kInterrupted) return summary.reason;
  return fmt::format("{}: {}", name_of(summary.outcome), summary.reason);
}

void add_loss(Lines& lines, const RunSummary& summary, const std::vector<double>& losses) {
  const std::string loss = std::isnan(summary.loss) ? "NaN" : fmt::format("{:.4g}", summary.loss);
  lines.add("loss",
            fmt::format("{} (mean of the last {})", loss, plural(summary.loss_steps, "step")));
  lines.add("", sparkline(losses));
}

void add_learning(Lines& lines, const RunSummary& summary) {
  std::vector<double> losses;
  losses.reserve(summary.curve.size());
  for (const CurvePoint& point : summary.curve) losses.push_back(point.loss);
  const bool none =
      std::all_of(losses.begin(), losses.end(), [](double x) { return std::isnan(x); });
  if (none && summary.gradients_refused == 0) {
    lines.add("loss", "unknown: no worker told one");
  } else {
    add_loss(lines, summary, losses);
  }
  if (summary.evaluation) {
    lines.add("accuracy",
              fmt::format("{:.2f} % on {} after {}; test loss {:.4g}",
                          summary.evaluation->accuracy * 100.0,
                          plural(summary.evaluation->samples, "test sample"),
                          plural(summary.evaluation->version, "step"), summary.evaluation->loss));
  }
}

void add_step_times(Lines& lines, const RunSummary& summary) {
  std::vector<double> times;
  times.reserve(summary.curve.size());
  for (const CurvePoint& point : summary.curve) times.push_back(seconds(point.step_time));
  lines.add("step time", fmt::format("median {}, p90 {}", short_time(summary.step_times.median),
                                     short_time(summary.step_times.p90)));
  lines.add("", sparkline(times));
  if (summary.step_times.overhead_median && summary.step_times.overhead_p90) {
    lines.add("", fmt::format("outside gradient computation: median {}, p90 {}",
                              short_time(*summary.step_times.overhead_median),
                              short_time(*summary.step_times.overhead_p90)));
  }
}

void add_closing(Lines& lines, const RunSummary& summary) {
  const StepStatistics& times = summary.step_times;
  const std::string undecided =
      times.undecided_share > 0.0
          ? fmt::format("waited for a decision up to {}, in {:.2g} % of steps",
                        short_time(times.undecided_max), times.undecided_share * 100.0)
          : "never waited for a decision";
  lines.add("closing", fmt::format("median {} from the last gradient needed to new parameters; {}",
                                   short_time(times.closing_median), undecided));
}

// For the last line of a list of which only some are shown.
std::string more_after(size_t place, size_t shown, size_t all) {
  if (place + 1 < shown || all <= shown) return "";
  return fmt::format("; and {} more", with_commas(all - shown));
}

void add_workers(Lines& lines, const RunSummary& summary) {
  const size_t shown = std::min(kWorkersShown, summary.waited_for.size());
  for (size_t i = 0; i < shown; ++i) {
    const WorkerStatistics& worker = summary.waited_for[i];
    const double share = static_cast<double>(worker.last) / static_cast<double>(summary.steps);
    lines.add(i == 0 ? "waited for" : "",
              fmt::format("worker {:<4} last in {:>3.0f} % of steps, median run-time {}{}{}",
                          worker.worker, share * 100.0, worker.median_exact ? "" : "at least ",
                          short_time(worker.median_run_time),
                          more_after(i, shown, summary.waited_for.size())));
  }
}

uint64_t left_behind(const WorkerStatistics& worker) { return worker.censored + worker.late; }

// Who was not waited for: what a policy that cuts does to the work of each.
void add_stragglers(Lines& lines, const RunSummary& summary) {
  if (summary.gradients_left_behind == 0) return;
  std::vector<WorkerStatistics> workers = summary.waited_for;
  std::sort(workers.begin(), workers.end(),
            [](const WorkerStatistics& a, const WorkerStatistics& b) {
              return std::tuple(left_behind(b), a.worker) < std::tuple(left_behind(a), b.worker);
            });
  uint64_t all = 0;
  std::vector<std::string> most;
  for (const WorkerStatistics& worker : workers) {
    all += worker.steps;
    if (most.size() == kStragglersShown || left_behind(worker) == 0) continue;
    const double share =
        static_cast<double>(left_behind(worker)) / static_cast<double>(worker.steps);
    most.push_back(fmt::format("worker {} ({:.0f} %{})", worker.worker, share * 100.0,
                               most.empty() ? " of its steps" : ""));
  }
  lines.add("stragglers", fmt::format("{} of {} gradients left behind, most often {}",
                                      with_commas(summary.gradients_left_behind), with_commas(all),
                                      fmt::join(most, ", ")));
}

void add_cutoff(Lines& lines, const RunSummary& summary) {
  if (!summary.cutoff) return;
  const CutoffSummary& cutoff = *summary.cutoff;
  if (cutoff.least == cutoff.most) {
    lines.add("cutoff", fmt::format("{} in every step", cutoff.most));
    return;
  }
  lines.add("cutoff", fmt::format("{} to {} of {}, mean {:.4g}", cutoff.least, cutoff.most,
                                  plural(summary.workers, "worker"), cutoff.mean));
  lines.add("", sparkline(cutoff.curve));
}

// How often those who were not waited for were there in time all the same.
void add_inclusion(Lines& lines, const RunSummary& summary) {
  if (summary.gradients_left_behind == 0) return;
  std::vector<std::pair<double, WorkerId>> shares;
  for (const WorkerStatistics& worker : summary.waited_for)
    shares.emplace_back(worker.inclusion(), worker.worker);
  std::sort(shares.begin(), shares.end());
  lines.add("inclusion",
            fmt::format("least {:.0f} % (worker {}), median {:.0f} %", shares.front().first * 100.0,
                        shares.front().second, shares[(shares.size() - 1) / 2].first * 100.0));
}

void add_waste(Lines& lines, const RunSummary& summary) {
  const WasteStatistics& waste = summary.waste;
  const bool some = waste.share.value_or(0.0) > 0.0;
  if (waste.stopped == 0 && !some) return;
  const std::string stops = waste.restart_median ? fmt::format("{}, restart after {} median",
                                                               plural(waste.stopped, "time"),
                                                               short_time(*waste.restart_median))
                                                 : "never";
  const std::string share =
      some ? fmt::format(", {:.3g} % of computing thrown away", *waste.share * 100.0) : "";
  lines.add("stopped", stops + share);
}

// How far workers went on without some blocks, and blocks without some workers.
// The few who were out of line most often.
void add_outliers(Lines& lines, const RunSummary& summary) {
  constexpr size_t kNamed = 3;
  const auto& all = summary.outliers;
  for (size_t i = 0; i < std::min(all.size(), kNamed); ++i) {
    const size_t others = i + 1 == kNamed ? all.size() - kNamed : 0;
    lines.add(i == 0 ? "outliers" : "",
              fmt::format("worker {:<4} in {}, up to {:.3g} times as large as usual{}",
                          all[i].worker, plural(all[i].steps, "step"), all[i].ratio_max,
                          others > 0 ? fmt::format("; and {} more", others) : ""));
  }
}

void add_weak(Lines& lines, const RunSummary& summary) {
  const WeakStatistics& weak = summary.weak;
  if (weak.fresh_mean) {
    const std::string behind =
        weak.staleness_max > 0 ? fmt::format("; in {:.2g} % of steps some were behind, by up to {}",
                                             100.0 * static_cast<double>(weak.stale_steps) /
                                                 static_cast<double>(summary.steps),
                                             plural(weak.staleness_max, "step"))
                               : "";
    lines.add("pulled", fmt::format("{:.2f} % of blocks fresh, least {:.0f} %{}",
                                    100.0 * *weak.fresh_mean, 100.0 * weak.fresh_min, behind));
  }
  if (weak.uneven_steps > 0) {
    lines.add("blocks",
              fmt::format("{:.3g} gradients each on average, from {} to {}; not all the same in "
                          "{:.2g} % of steps",
                          weak.contributors_mean, weak.contributors_min, weak.contributors_max,
                          100.0 * static_cast<double>(weak.uneven_steps) /
                              static_cast<double>(summary.steps)));
  }
}

std::string job_line(const RunSummary& summary) {
  const std::string workers = plural(summary.workers, "worker");
  const std::string policy = summary.policy.empty() ? "" : ", policy " + summary.policy;
  if (!summary.replayed.empty()) {
    return fmt::format("replay of {}, {}{}", summary.replayed, workers, policy);
  }
  const std::string what =
      summary.model.empty() ? "" : fmt::format("{} on {}, ", summary.model, summary.data);
  return fmt::format("{}{}, {}{}", what, workers, plural(summary.shards, "shard"), policy);
}

void add_losses(Lines& lines, const RunSummary& summary) {
  const size_t shown = std::min(kLossesShown, summary.lost.size());
  for (size_t i = 0; i < shown; ++i) {
    const EventRecord& event = summary.lost[i];
    lines.add(i == 0 ? "lost" : "",
              fmt::format("{} at step {}: {}{}", peer_text(event), with_commas(event.step),
                          event_text(event), more_after(i, shown, summary.lost.size())));
  }
}

// By what they are: with a hundred workers, one line per process would be no summary.
void add_memory(Lines& lines, const RunSummary& summary) {
  if (summary.memory_bytes.empty()) return;
  const auto largest =
      std::max_element(summary.memory_bytes.begin(), summary.memory_bytes.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  lines.add("memory", fmt::format("at most {} in one process ({})", bytes(largest->second),
                                  name_of(largest->first)));
}

// Reasons of decisions are long, and a long run has many: a part of them at a time.
constexpr Step kDecisionsAtOnce = 50'000;

Result<std::optional<CutoffSummary>> cutoffs_of(const RunReader& reader,
                                                const std::vector<CurvePoint>& curve, Step steps) {
  CutoffSummary cutoff;
  cutoff.least = std::numeric_limits<uint32_t>::max();
  std::vector<std::pair<double, uint64_t>> stretches(curve.size());  // sum and number
  size_t stretch = 0;
  double sum = 0.0;
  uint64_t number = 0;
  for (Step from = 0; from < steps; from += kDecisionsAtOnce) {
    const Step to = std::min(steps, from + kDecisionsAtOnce);
    const auto decisions = reader.decisions(from, to);
    if (!decisions) return decisions.error();
    std::vector<std::optional<uint32_t>> last(to - from);
    for (const DecisionRecord& each : decisions.value()) last[each.step - from] = each.cutoff;
    for (Step step = from; step < to; ++step) {
      while (stretch + 1 < curve.size() && curve[stretch + 1].first_step <= step) ++stretch;
      if (!last[step - from]) continue;
      const uint32_t value = *last[step - from];
      cutoff.least = std::min(cutoff.least, value);
      cutoff.most = std::max(cutoff.most, value);
      sum += value;
      ++number;
      stretches[stretch].first += value;
      ++stretches[stretch].second;
    }
  }
  if (number == 0) return std::optional<CutoffSummary>();
  cutoff.mean = sum / static_cast<double>(number);
  for (const auto& [total, count] : stretches)
    cutoff.curve.push_back(count > 0 ? total / static_cast<double>(count) : std::nan(""));
  return std::optional(cutoff);
}

nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

nlohmann::json number(const std::optional<double>& value) {
  return value ? number(*value) : nlohmann::json(nullptr);
}

nlohmann::json number(const std::optional<Duration>& value) {
  return value ? nlohmann::json(seconds(*value)) : nlohmann::json(nullptr);
}

}  // namespace

Result<RunSummary> summarize(const RunReader& reader) {
  const Result<RunHeader> header = reader.header();
  if (!header) return header.error();
  Result<RunEnd> end = reader.end();
  if (!end) return end.error();
  const Result<RunTotals> totals = reader.totals();
  if (!totals) return totals.error();
  const Result<StepStatistics> times = reader.step_times();
  if (!times) return times.error();
  const Result<WasteStatistics> waste = reader.waste();
  if (!waste) return waste.error();
  Result<std::vector<OutlierStatistics>> outliers = reader.outliers();
  if (!outliers) return outliers.error();
  const Result<WeakStatistics> weak = reader.weak();
  if (!weak) return weak.error();
  Result<std::vector<WorkerStatistics>> workers = reader.workers();
  if (!workers) return workers.error();
  Result<std::vector<CurvePoint>> curve = reader.curve(kCurvePoints);
  if (!curve) return curve.error();
  auto cutoff = cutoffs_of(reader, curve.value(), totals.value().steps);
  if (!cutoff) return cutoff.error();
  const Result<std::vector<EvaluationRecord>> evaluations = reader.evaluations();
  if (!evaluations) return evaluations.error();
  Result<std::vector<EventRecord>> events = reader.events();
  if (!events) return events.error();
  const uint64_t steps = totals.value().steps;
  const uint64_t loss_steps = std::min(steps, std::max<uint64_t>(10, steps / 100));
  const Result<double> loss = reader.recent_loss(loss_steps);
  if (!loss) return loss.error();

  RunSummary summary;
  summary.run_file = reader.path();
  summary.model = setting(header.value(), "model");
  summary.data = setting(header.value(), "data");
  summary.policy = setting(header.value(), "policy");
  summary.scenario = setting(header.value(), "scenario");
  summary.replayed = setting(header.value(), "replay");
  summary.outcome = end.value().outcome;
  summary.reason = end.value().reason;
  summary.warning = reader.warning();
  summary.steps = steps;
  summary.seconds = seconds(end.value().elapsed);
  summary.samples_per_second = per_second(totals.value().samples, summary.seconds);
  summary.steps_per_second = per_second(steps, summary.seconds);
  summary.loss = loss.value();
  summary.loss_steps = loss_steps;
  if (!evaluations.value().empty()) summary.evaluation = evaluations.value().back();
  summary.gradients_used = totals.value().gradients_used;
  summary.gradients_late = totals.value().gradients_late;
  summary.gradients_refused = totals.value().gradients_refused;
  summary.outliers = std::move(outliers).value();
  summary.workers = totals.value().workers;
  summary.shards = totals.value().shards;
  summary.parameters_digest = end.value().parameters_digest;
  summary.step_times = times.value();
  summary.waste = waste.value();
  summary.weak = weak.value();
  summary.waited_for = std::move(workers).value();
  for (const WorkerStatistics& worker : summary.waited_for)
    summary.gradients_left_behind += left_behind(worker);
  std::sort(summary.waited_for.begin(), summary.waited_for.end(),
            [](const WorkerStatistics& a, const WorkerStatistics& b) {
              return std::tuple(b.last, b.median_run_time, a.worker) <
                     std::tuple(a.last, a.median_run_time, b.worker);
            });
  std::copy_if(events.value().begin(), events.value().end(), std::back_inserter(summary.lost),
               [](const EventRecord& event) { return event.kind() == EventKind::kLost; });
  summary.memory_bytes = std::move(end.value().memory_bytes);
  summary.curve = std::move(curve).value();
  summary.cutoff = std::move(cutoff).value();
  return summary;
}

std::string to_text(const RunSummary& summary) {
  Lines lines;
  lines.add("run", summary.run_file);
  if (!summary.warning.empty()) lines.add("warning", summary.warning);
  lines.add("outcome", outcome_line(summary));
  lines.add("job", job_line(summary));
  if (!summary.scenario.empty()) {
    lines.add("simulated", fmt::format("{}; all times are virtual", summary.scenario));
  }
  if (summary.steps == 0) {
    lines.add("steps", "none recorded");
    add_losses(lines, summary);
    return lines.take();
  }
  const bool trains = summary.replayed.empty();
  lines.add(
      "steps",
      fmt::format("{} in {}: {} steps/s{}", with_commas(summary.steps), long_time(summary.seconds),
                  amount(summary.steps_per_second),
                  trains ? fmt::format(", {} samples/s", amount(summary.samples_per_second)) : ""));
  if (trains) add_learning(lines, summary);
  lines.add(
      "gradients",
      fmt::format("{} used, {} late, {} refused", with_commas(summary.gradients_used),
                  with_commas(summary.gradients_late), with_commas(summary.gradients_refused)));
  add_outliers(lines, summary);
  add_cutoff(lines, summary);
  add_stragglers(lines, summary);
  add_inclusion(lines, summary);
  add_waste(lines, summary);
  add_weak(lines, summary);
  add_step_times(lines, summary);
  if (trains) add_closing(lines, summary);
  add_workers(lines, summary);
  add_losses(lines, summary);
  add_memory(lines, summary);
  return lines.take();
}

std::string to_json_line(const RunSummary& summary) {
  // ordered_json keeps what people look for first at the front of the line.
  nlohmann::ordered_json json;
  json["outcome"] = std::string(name_of(summary.outcome));
  json["reason"] = summary.reason;
  json["steps"] = summary.steps;
  json["seconds"] = number(summary.seconds);
  json["samples_per_second"] = number(summary.samples_per_second);
  json["steps_per_second"] = number(summary.steps_per_second);
  json["loss"] = number(summary.loss);
  json["test_loss"] = number(summary.evaluation ? summary.evaluation->loss : std::nan(""));
  json["test_accuracy"] = number(summary.evaluation ? summary.evaluation->accuracy : std::nan(""));
  json["gradients_used"] = summary.gradients_used;
  json["gradients_late"] = summary.gradients_late;
  json["gradients_left_behind"] = summary.gradients_left_behind;
  json["gradients_refused"] = summary.gradients_refused;
  json["outliers"] = nlohmann::json::array();
  for (const OutlierStatistics& each : summary.outliers) {
    json["outliers"].push_back(
        {{"worker", each.worker}, {"steps", each.steps}, {"ratio_max", each.ratio_max}});
  }
  json["workers"] = summary.workers;
  json["shards"] = summary.shards;
  const bool timed = summary.steps > 0;
  json["step_seconds_median"] = timed ? number(summary.step_times.median) : nlohmann::json(nullptr);
  json["step_seconds_p90"] = timed ? number(summary.step_times.p90) : nlohmann::json(nullptr);
  json["step_overhead_seconds_median"] = number(summary.step_times.overhead_median);
  json["step_overhead_seconds_p90"] = number(summary.step_times.overhead_p90);
  json["closing_seconds_median"] =
      timed ? number(summary.step_times.closing_median) : nlohmann::json(nullptr);
  json["undecided_seconds_max"] =
      timed ? number(summary.step_times.undecided_max) : nlohmann::json(nullptr);
  json["undecided_share"] =
      timed ? number(summary.step_times.undecided_share) : nlohmann::json(nullptr);
  json["cutoff_mean"] = summary.cutoff ? number(summary.cutoff->mean) : nullptr;
  json["cutoff_min"] = summary.cutoff ? nlohmann::json(summary.cutoff->least) : nullptr;
  json["cutoff_max"] = summary.cutoff ? nlohmann::json(summary.cutoff->most) : nullptr;
  json["stopped"] = summary.waste.stopped;
  json["restart_seconds_median"] = number(summary.waste.restart_median);
  json["wasted_share"] = number(summary.waste.share);
  json["fresh_blocks_mean"] = number(summary.weak.fresh_mean);
  json["fresh_blocks_min"] = summary.weak.fresh_mean ? number(summary.weak.fresh_min) : nullptr;
  json["staleness_max"] = summary.weak.staleness_max;
  json["uneven_steps"] = summary.weak.uneven_steps;
  json["waited_for"] = nlohmann::json::array();
  for (const WorkerStatistics& worker : summary.waited_for) {
    const double share = static_cast<double>(worker.last) / static_cast<double>(summary.steps);
    json["waited_for"].push_back({{"worker", worker.worker},
                                  {"share", number(share)},
                                  {"left_behind", left_behind(worker)},
                                  {"inclusion", number(worker.inclusion())},
                                  {"run_time_seconds_median", number(worker.median_run_time)},
                                  {"run_time_exact", worker.median_exact}});
  }
  json["lost"] = nlohmann::json::array();
  for (const EventRecord& event : summary.lost) {
    json["lost"].push_back(
        {{"peer", peer_text(event)}, {"step", event.step}, {"text", event_text(event)}});
  }
  json["memory_bytes"] = nlohmann::json::object();
  for (const auto& [peer, size] : summary.memory_bytes) json["memory_bytes"][name_of(peer)] = size;
  json["parameters_digest"] = summary.parameters_digest == 0
                                  ? nlohmann::json(nullptr)
                                  : nlohmann::json(to_hex(summary.parameters_digest));
  json["scenario"] =
      summary.scenario.empty() ? nlohmann::json(nullptr) : nlohmann::json(summary.scenario);
  json["run_file"] = summary.run_file;
  // A file name need not be UTF-8; JSON must.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string sparkline(const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  std::string line;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      line += "×";
      continue;
    }
    // Halved before subtracting: the span of two finite numbers need not be finite.
    const double span = high / 2.0 - low / 2.0;
    const double level = span > 0.0 ? (value / 2.0 - low / 2.0) / span : 0.0;
    const size_t last = kBlocks.size() - 1;
    line +=
        kBlocks[std::min(last, static_cast<size_t>(level * static_cast<double>(kBlocks.size())))];
  }
  return line;
}

}  // namespace drover

// The summary of a run as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/event_text.h"
#include "core/text.h"
#include "store/schema.h"
#include "view/summary.h"
#include "view/text_format.h"

namespace drover {
namespace {

constexpr uint64_t kCurvePoints = 40;
constexpr size_t kWorkersShown = 3;
constexpr size_t kLossesShown = 2;
constexpr size_t kStragglersShown = 3;
constexpr size_t kOutliersShown = 3;
class Lines {
 public:
  void add(std::string_view label, std::string_view text) {
    fmt::format_to(std::back_inserter(text_), "{:<11}{}\n", label, text);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

double share(uint64_t part, uint64_t of) {
  return static_cast<double>(part) / static_cast<double>(of);
}

std::vector<double> curve(const RunSummary& summary, double CurvePoint::*member) {
  std::vector<double> values;
  for (const CurvePoint& point : curve_of(summary.sums.steps(), kCurvePoints))
    values.push_back(point.*member);
  return values;
}

std::string outcome_line(const RunEnd& end) {
  if (end.outcome == RunOutcome::kRunning) return end.reason;
  if (end.reason.empty()) return std::string(name_of(end.outcome));
  if (end.outcome == RunOutcome::kInterrupted) return end.reason;
  return fmt::format("{}: {}", name_of(end.outcome), end.reason);
}

std::string job_line(const RunSummary& summary) {
  const RunTables& tables = summary.tables;
  const std::string workers = plural(summary.workers(), "worker");
  const std::string named = tables.setting("policy");
  const std::string policy = named.empty() ? "" : ", policy " + named;
  const std::string replayed = tables.setting("replay");
  if (!replayed.empty()) return fmt::format("replay of {}, {}{}", replayed, workers, policy);
  const std::string model = tables.setting("model");
  const std::string task =
      model.empty() ? "" : fmt::format("{} on {}, ", model, tables.setting("data"));
  return fmt::format("{}{}, {}{}", task, workers, plural(tables.shards, "shard"), policy);
}

void add_steps(Lines& lines, const RunSummary& summary, bool trains) {
  const double time = summary.seconds();
  const auto rate = [&](uint64_t count) {
    return amount(time > 0.0 ? static_cast<double>(count) / time : kUnknown);
  };
  const uint64_t steps = summary.sums.step_count();
  const std::string samples =
      trains ? fmt::format(", {} samples/s", rate(summary.sums.gradients().samples)) : "";
  lines.add("steps", fmt::format("{} in {}: {} steps/s{}", with_commas(steps), long_time(time),
                                 rate(steps), samples));
}

void add_learning(Lines& lines, const RunSummary& summary) {
  const std::vector<double> losses = curve(summary, &CurvePoint::loss);
  const bool none =
      std::all_of(losses.begin(), losses.end(), [](double x) { return std::isnan(x); });
  if (none && summary.sums.gradients().refused == 0) {
    lines.add("loss", "unknown (no worker reported one)");
  } else {
    const RecentLearning recent = summary.sums.recent_learning();
    const std::string loss = std::isnan(recent.loss) ? "NaN" : fmt::format("{:.4g}", recent.loss);
    lines.add("loss", fmt::format("{} (mean of the last {})", loss, plural(recent.steps, "step")));
    lines.add("", sparkline(losses));
  }
  if (summary.tables.evaluations.empty()) return;
  const EvaluationRecord& last = summary.tables.evaluations.back();
  lines.add("accuracy", fmt::format("{:.2f} % on {} after {}; test loss {:.4g}",
                                    last.accuracy * 100.0, plural(last.samples, "test sample"),
                                    plural(last.version, "step"), last.loss));
}

void add_gradients(Lines& lines, const RunSummary& summary) {
  const GradientTotals& gradients = summary.sums.gradients();
  lines.add("gradients", fmt::format("{} used, {} late, {} refused", with_commas(gradients.used),
                                     with_commas(gradients.late), with_commas(gradients.refused)));
  const std::vector<OutlierStatistics>& all = summary.outliers;
  for (size_t i = 0; i < std::min(all.size(), kOutliersShown); ++i) {
    const size_t others = i + 1 == kOutliersShown ? all.size() - kOutliersShown : 0;
    lines.add(i == 0 ? "outliers" : "",
              fmt::format("worker {:<4} in {}, norm up to {:.3g} times the typical norm{}",
                          all[i].worker, plural(all[i].steps, "step"), all[i].ratio_max,
                          others > 0 ? fmt::format("; and {} more", others) : ""));
  }
}

void add_cutoff(Lines& lines, const RunSummary& summary) {
  const CutoffTotals& cutoff = summary.sums.cutoff();
  if (cutoff.mean.count == 0) return;
  if (cutoff.least == cutoff.most) {
    lines.add("cutoff", fmt::format("{} in every step", cutoff.most));
    return;
  }
  lines.add("cutoff", fmt::format("{} to {} of {}, mean {:.4g}", cutoff.least, cutoff.most,
                                  plural(summary.workers(), "worker"), cutoff.mean.value()));
  lines.add("", sparkline(curve(summary, &CurvePoint::cutoff)));
}

// Dropped gradients, and the share of steps in which each worker was in time.
void add_stragglers(Lines& lines, const RunSummary& summary) {
  if (summary.dropped() == 0) return;
  const std::vector<WorkerTotals>& workers = summary.sums.workers();
  std::vector<WorkerId> order = summary.waited_for();
  std::sort(order.begin(), order.end(), [&](WorkerId a, WorkerId b) {
    return std::pair(workers[b].missed(), a) < std::pair(workers[a].missed(), b);
  });
  uint64_t all = 0;
  std::vector<std::string> most;
  for (const WorkerId worker : order) {
    const WorkerTotals& own = workers[worker];
    all += own.steps;
    if (most.size() == kStragglersShown || own.missed() == 0) continue;
    most.push_back(fmt::format("worker {} ({:.0f} %{})", worker,
                               share(own.missed(), own.steps) * 100.0,
                               most.empty() ? " of its steps" : ""));
  }
  lines.add("stragglers",
            fmt::format("{} of {} gradients dropped, most often {}", with_commas(summary.dropped()),
                        with_commas(all), fmt::join(most, ", ")));
  std::vector<std::pair<double, WorkerId>> inclusion;
  for (const WorkerId worker : order) inclusion.emplace_back(workers[worker].inclusion(), worker);
  std::sort(inclusion.begin(), inclusion.end());
  lines.add("inclusion", fmt::format("lowest {:.0f} % (worker {}), median {:.0f} %",
                                     inclusion.front().first * 100.0, inclusion.front().second,
                                     inclusion[(inclusion.size() - 1) / 2].first * 100.0));
}

void add_stops(Lines& lines, const StopTotals& stops) {
  const bool some = stops.wasted_share.value_or(0.0) > 0.0;
  if (stops.stopped == 0 && !some) return;
  const std::string aborted = stops.restart_median ? fmt::format("{}, restart after {} (median)",
                                                                 plural(stops.stopped, "gradient"),
                                                                 short_time(*stops.restart_median))
                                                   : "none";
  const std::string wasted =
      some ? fmt::format("; {:.3g} % of computing time wasted", *stops.wasted_share * 100.0) : "";
  lines.add("aborted", aborted + wasted);
}

// The freshness of pulled blocks, and the numbers of gradients per block.
void add_blocks(Lines& lines, const RunSummary& summary) {
  const BlockTotals& blocks = summary.sums.blocks();
  const uint64_t steps = summary.sums.step_count();
  if (blocks.fresh.count > 0) {
    const std::string behind = blocks.staleness_max > 0
                                   ? fmt::format("; stale blocks in {:.2g} % of steps, by up to {}",
                                                 100.0 * share(blocks.stale_steps, steps),
                                                 plural(blocks.staleness_max, "step"))
                                   : "";
    lines.add("pulled",
              fmt::format("{:.2f} % of blocks fresh, lowest {:.0f} %{}",
                          100.0 * blocks.fresh.value(), 100.0 * blocks.fresh_min, behind));
  }
  if (blocks.uneven_steps == 0) return;
  lines.add("blocks",
            fmt::format("mean {:.3g} gradients per block, {} to {}; uneven in {:.2g} % of steps",
                        share(blocks.gradients, blocks.blocks), blocks.contributors_min,
                        blocks.contributors_max, 100.0 * share(blocks.uneven_steps, steps)));
}

void add_step_times(Lines& lines, const RunSummary& summary, bool trains) {
  const StepTimeTotals& times = summary.sums.step_times();
  const auto median_and_p90 = [](const TimeHistogram& of) {
    return fmt::format("median {}, p90 {}", short_time(of.percentile(50)),
                       short_time(of.percentile(90)));
  };
  lines.add("step time", median_and_p90(times.elapsed));
  lines.add("", sparkline(curve(summary, &CurvePoint::step_time_s)));
  if (times.overhead.count() > 0)
    lines.add("", "outside gradient computation: " + median_and_p90(times.overhead));
  if (!trains) return;
  const std::string undecided =
      times.undecided_steps > 0 ? fmt::format("waited up to {} for a decision in {:.2g} % of steps",
                                              short_time(times.undecided_max),
                                              share(times.undecided_steps, times.steps) * 100.0)
                                : "never waited for a decision";
  lines.add("closing", fmt::format("median {} from the last needed gradient to new parameters; {}",
                                   short_time(times.closing.percentile(50)), undecided));
}

// The end of the last shown line of a list, with the number of entries that are not shown.
std::string more_after(size_t place, size_t shown, size_t all) {
  if (place + 1 < shown || all <= shown) return "";
  return fmt::format("; and {} more", with_commas(all - shown));
}

void add_workers(Lines& lines, const RunSummary& summary) {
  const std::vector<WorkerId> order = summary.waited_for();
  const size_t shown = std::min(kWorkersShown, order.size());
  for (size_t i = 0; i < shown; ++i) {
    const WorkerTotals& own = summary.sums.workers()[order[i]];
    lines.add(i == 0 ? "waited for" : "",
              fmt::format("worker {:<4} last in {:>3.0f} % of steps, median run-time {}{}{}",
                          order[i], share(own.last, summary.sums.step_count()) * 100.0,
                          own.median_exact() ? "" : "at least ", short_time(own.median_run_time()),
                          more_after(i, shown, order.size())));
  }
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

// Only the largest process is shown, because a line for each of a hundred workers is too long.
void add_memory(Lines& lines, const RunSummary& summary) {
  const auto& all = summary.tables.end.memory_bytes;
  if (all.empty()) return;
  const auto largest = std::max_element(
      all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  lines.add("memory", fmt::format("peak {} in the largest process ({})", bytes(largest->second),
                                  name_of(largest->first)));
}

}  // namespace

std::string to_text(const RunSummary& summary) {
  const RunTables& tables = summary.tables;
  Lines lines;
  lines.add("run", tables.path);
  if (!tables.warning.empty()) lines.add("warning", tables.warning);
  lines.add("outcome", outcome_line(tables.end));
  lines.add("job", job_line(summary));
  if (const std::string scenario = tables.setting("scenario"); !scenario.empty())
    lines.add("simulated", fmt::format("{}; all times are virtual", scenario));
  if (summary.sums.step_count() == 0) {
    lines.add("steps", "none recorded");
    add_losses(lines, summary);
    return lines.take();
  }
  const bool trains = tables.setting("replay").empty();
  add_steps(lines, summary, trains);
  if (trains) add_learning(lines, summary);
  add_gradients(lines, summary);
  add_cutoff(lines, summary);
  add_stragglers(lines, summary);
  add_stops(lines, summary.stops);
  add_blocks(lines, summary);
  add_step_times(lines, summary, trains);
  add_workers(lines, summary);
  add_losses(lines, summary);
  add_memory(lines, summary);
  return lines.take();
}

}  // namespace drover

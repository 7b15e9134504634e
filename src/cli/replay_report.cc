#include "cli/replay_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/text.h"

namespace drover {
namespace {

constexpr size_t kColumns = 8;
using Cells = std::array<std::string, kColumns>;

double microseconds(Duration duration) { return seconds(duration) * 1e6; }

nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

std::string short_time(Duration duration) {
  const double value = microseconds(duration);
  if (value >= 1e3) return fmt::format("{:.3g} ms", value / 1e3);
  return fmt::format("{:.3g} µs", value);
}

Cells cells_of(const ReplayRow& row) {
  const ReplayResult& result = row.result;
  return {row.policy,
          percent(result.oracle_share_total),
          percent(result.oracle_share_median),
          percent(result.time_vs_sync),
          fmt::format("{:.1f}", result.cutoff_mean),
          percent(result.inclusion_min),
          short_time(result.decision_p50),
          short_time(result.decision_p99)};
}

// Columns on a terminal: bytes, less those that continue a character of UTF-8.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

}  // namespace

std::string to_json_line(const ReplayFrame& frame, const ReplayRow& row) {
  const ReplayResult& result = row.result;
  nlohmann::ordered_json json;
  json["policy"] = row.policy;
  json["steps"] = result.steps;
  json["workers"] = result.workers;
  json["throughput_total"] = number(result.throughput_total);
  json["throughput_median"] = number(result.throughput_median);
  json["oracle_share_total"] = number(result.oracle_share_total);
  json["oracle_share_median"] = number(result.oracle_share_median);
  json["time_vs_sync"] = number(result.time_vs_sync);
  json["cutoff_mean"] = number(result.cutoff_mean);
  json["decision_us_p50"] = number(microseconds(result.decision_p50));
  json["decision_us_p99"] = number(microseconds(result.decision_p99));
  json["reviews_mean"] = number(result.reviews_mean);
  json["inclusion_min"] = number(result.inclusion_min);
  json["warmup"] = frame.warmup;
  json["measured_steps"] = result.measured_steps;
  json["objective"] = frame.objective;
  json["trace"] = frame.trace;
  // A file name need not be UTF-8; JSON must.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string to_text(const ReplayFrame& frame, const std::vector<ReplayRow>& rows) {
  DROVER_CHECK(!rows.empty());
  const ReplayResult& any = rows.front().result;
  std::string text = fmt::format("{}: {} steps x {} workers, objective {}", frame.trace,
                                 with_commas(any.steps), with_commas(any.workers), frame.objective);
  if (frame.warmup > 0) {
    text += fmt::format("; first {} steps not measured", with_commas(frame.warmup));
  }
  text += "\n\n";
  std::vector<Cells> lines = {
      {"", "of oracle", "of oracle", "time", "gradients", "least", "decision", "decision"},
      {"policy", "total", "median", "vs sync", "per step", "included", "median", "p99"}};
  std::transform(rows.begin(), rows.end(), std::back_inserter(lines), cells_of);
  std::array<size_t, kColumns> widths{};
  for (const Cells& cells : lines) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], width_of(cells[i]));
  }
  for (const Cells& cells : lines) {
    for (size_t i = 0; i < kColumns; ++i) {
      const std::string space(widths[i] - width_of(cells[i]), ' ');
      // Names are left-aligned, numbers right-aligned.
      text += i == 0 ? cells[i] + space : "  " + space + cells[i];
    }
    text += '\n';
  }
  return text;
}

}  // namespace drover

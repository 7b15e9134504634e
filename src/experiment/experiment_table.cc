#include "experiment/experiment_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace drover {
namespace {

constexpr size_t kColumns = 10;
using Line = std::array<std::string, kColumns>;
// Headings have two rows, to keep the table narrow.
constexpr std::array<std::array<std::string_view, 2>, kColumns> kHeads = {
    {{"", "variant"},
     {"seeds", "reached"},
     {"time to target", "mean"},
     {"", "best"},
     {"", "worst"},
     {"95 % of", "the mean"},
     {"vs. first", "variant"},
     {"steps to", "target"},
     {"gradients", "per step"},
     {"idle", "share"}}};
constexpr std::string_view kFootnote =
    "* over seeds that reached the target (for ratios: with both variants); the others are below";

std::string time_text(double seconds) {
  if (seconds >= 100.0) return fmt::format("{:.0f} s", seconds);
  return fmt::format("{:.3g} s", seconds);
}

std::string range_text(const std::optional<Interval>& interval, bool time) {
  if (!interval) return "-";
  if (!time) return fmt::format("{:.2f}-{:.2f}", interval->low, interval->high);
  const bool whole = interval->high >= 100.0;
  return whole ? fmt::format("{:.0f}-{:.0f} s", interval->low, interval->high)
               : fmt::format("{:.3g}-{:.3g} s", interval->low, interval->high);
}

Line line_of(const std::string& name, const VariantSummary& summary) {
  // A star marks a mean over some of the seeds.
  const char* const star = summary.reached < summary.cells ? "*" : "";
  const char* const ratio_star = summary.pairs < summary.cells ? "*" : "";
  Line line;
  line.fill("-");
  line[0] = name;
  line[1] = fmt::format("{}/{}", summary.reached, summary.cells);
  if (summary.seconds) {
    line[2] = time_text(summary.seconds->mean) + star;
    line[3] = time_text(summary.seconds->best);
    line[4] = time_text(summary.seconds->worst);
    line[5] = range_text(summary.seconds->interval, true) + (summary.seconds->interval ? star : "");
  }
  if (summary.ratio) {
    line[6] = fmt::format("{:.2f}{}", *summary.ratio, ratio_star);
    if (summary.ratio_interval) line[6] += " (" + range_text(summary.ratio_interval, false) + ")";
  }
  if (summary.steps) line[7] = fmt::format("{:.1f}{}", *summary.steps, star);
  if (summary.contributors) line[8] = fmt::format("{:.1f}", *summary.contributors);
  if (summary.idle_share) line[9] = fmt::format("{:.1f} %", 100.0 * *summary.idle_share);
  return line;
}

// Columns on a terminal: bytes, less those that continue a character of UTF-8.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

bool has_star(const PlaceSummary& place) {
  return std::any_of(place.variants.begin(), place.variants.end(), [](const VariantSummary& each) {
    return each.reached > 0 && each.pairs < each.cells;
  });
}

std::string title_of(const ExperimentFile& file, const Place& place) {
  return fmt::format("{}: time to {} ({})", place.name, to_text(file.target),
                     place.real ? "real processes" : "simulated: virtual time");
}

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string escaped = "\"";
  for (const char each : text) escaped += each == '"' ? std::string("\"\"") : std::string(1, each);
  return escaped + "\"";
}

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string_view state_of(const CellMeasures& cell) {
  if (cell.reached) return "reached";
  return cell.failed ? "failed" : "not reached";
}

// The numbers of a variant with their names in CSV and JSON; absent numbers are NaN.
std::vector<std::pair<std::string_view, double>> numbers_of(const VariantSummary& summary) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  constexpr Interval kUnknown{kNone, kNone};
  const MeanAndRange time = summary.seconds.value_or(MeanAndRange{kNone, kNone, kNone, kUnknown});
  const Interval time_interval = time.interval.value_or(kUnknown);
  const Interval ratio_interval = summary.ratio_interval.value_or(kUnknown);
  return {{"cells", summary.cells},
          {"reached", summary.reached},
          {"failed", summary.failed},
          {"seconds_mean", time.mean},
          {"seconds_best", time.best},
          {"seconds_worst", time.worst},
          {"seconds_low", time_interval.low},
          {"seconds_high", time_interval.high},
          {"ratio", summary.ratio.value_or(kNone)},
          {"ratio_low", ratio_interval.low},
          {"ratio_high", ratio_interval.high},
          {"pairs", summary.pairs},
          {"steps_mean", summary.steps.value_or(kNone)},
          {"gradients_mean", summary.gradients.value_or(kNone)},
          {"contributors_mean", summary.contributors.value_or(kNone)},
          {"idle_share", summary.idle_share.value_or(kNone)}};
}

// Whole numbers become integers in JSON.
nlohmann::json json_of(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<int64_t>(value);
  return value;
}

}  // namespace

std::string to_text(const ExperimentFile& file, const std::vector<PlaceSummary>& places) {
  std::string text;
  for (size_t place = 0; place < places.size(); ++place) {
    std::vector<Line> lines(2);
    for (size_t i = 0; i < kColumns; ++i) {
      for (size_t row = 0; row < 2; ++row) lines[row][i] = kHeads[i][row];
    }
    for (size_t variant = 0; variant < file.variants.size(); ++variant)
      lines.push_back(line_of(file.variants[variant].name, places[place].variants[variant]));
    std::array<size_t, kColumns> widths{};
    for (const Line& line : lines) {
      for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], width_of(line[i]));
    }
    text += fmt::format("{}{}\n\n", place > 0 ? "\n" : "", title_of(file, file.places[place]));
    for (const Line& line : lines) {
      for (size_t i = 0; i < kColumns; ++i) {
        const std::string space(widths[i] - width_of(line[i]), ' ');
        // Names are left-aligned, numbers right-aligned.
        text += i == 0 ? line[i] + space : "  " + space + line[i];
      }
      text += '\n';
    }
    if (has_star(places[place])) text += fmt::format("{}\n", kFootnote);
    for (const VariantSummary& variant : places[place].variants) {
      for (const std::string& note : variant.notes) text += fmt::format("  {}\n", note);
    }
  }
  return text;
}

std::string to_markdown(const ExperimentFile& file, const std::vector<PlaceSummary>& places) {
  std::string text = file.about.empty() ? "" : file.about + "\n\n";
  for (size_t place = 0; place < places.size(); ++place) {
    text += fmt::format("**{}**\n\n|", title_of(file, file.places[place]));
    for (const auto& head : kHeads)
      text += fmt::format(" {}{}{} |", head[0], head[0].empty() ? "" : " ", head[1]);
    text += "\n|---|";
    for (size_t i = 1; i < kColumns; ++i) text += "---:|";
    text += '\n';
    for (size_t variant = 0; variant < file.variants.size(); ++variant) {
      const Line line = line_of(file.variants[variant].name, places[place].variants[variant]);
      text += fmt::format("| {} |\n", fmt::join(line, " | "));
    }
    text += '\n';
    if (has_star(places[place])) text += fmt::format("\\{}\n\n", kFootnote);
    bool any = false;
    for (const VariantSummary& variant : places[place].variants) {
      for (const std::string& note : variant.notes) text += fmt::format("- {}\n", note);
      any = any || !variant.notes.empty();
    }
    if (any) text += '\n';
  }
  return text;
}

std::string summary_csv(const ExperimentFile& file, const std::vector<PlaceSummary>& places) {
  std::string text = "place,variant";
  for (const auto& [name, value] : numbers_of({})) text += fmt::format(",{}", name);
  text += '\n';
  for (size_t place = 0; place < places.size(); ++place) {
    for (size_t variant = 0; variant < file.variants.size(); ++variant) {
      text += csv_text(file.places[place].name) + "," + csv_text(file.variants[variant].name);
      for (const auto& [name, value] : numbers_of(places[place].variants[variant]))
        text += std::isnan(value) ? "," : fmt::format(",{}", value);
      text += '\n';
    }
  }
  return text;
}

std::string results_csv(const ExperimentFile& file, const std::vector<CellResult>& results) {
  std::string text =
      "place,variant,seed,state,seconds,trained_seconds,steps,gradients,contributors_mean,idle_"
      "share,best,reason\n";
  for (const CellResult& result : results) {
    const CellMeasures& cell = result.measures;
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_text(file.places[result.place].name),
        csv_text(file.variants[result.variant].name), result.seed, state_of(cell), cell.seconds,
        cell.trained_seconds, cell.steps, cell.gradients, cell.contributors_mean,
        csv_number(cell.idle_share), csv_number(cell.best), csv_text(cell.reason));
  }
  return text;
}

std::string to_json_line(const ExperimentFile& file, const std::vector<PlaceSummary>& places,
                         const std::string& folder) {
  nlohmann::ordered_json json;
  json["experiment"] = file.path;
  json["folder"] = folder;
  json["target"] = to_text(file.target);
  json["seeds"] = file.seeds;
  json["places"] = nlohmann::ordered_json::array();
  for (size_t place = 0; place < places.size(); ++place) {
    nlohmann::ordered_json one;
    one["place"] = file.places[place].name;
    one["real"] = file.places[place].real;
    one["variants"] = nlohmann::ordered_json::array();
    for (size_t variant = 0; variant < file.variants.size(); ++variant) {
      const VariantSummary& each = places[place].variants[variant];
      nlohmann::ordered_json row;
      row["variant"] = file.variants[variant].name;
      for (const auto& [name, value] : numbers_of(each)) row[std::string(name)] = json_of(value);
      row["notes"] = each.notes;
      one["variants"].push_back(std::move(row));
    }
    json["places"].push_back(std::move(one));
  }
  // Names need not be UTF-8; JSON must.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace drover

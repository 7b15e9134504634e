#include "system/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "core/check.h"

namespace drover {
namespace {

// Three significant digits; no decimals for large numbers.
std::string shown(double value) {
  return value >= 100.0 ? fmt::format("{:.0f}", value)
                        : fmt::format("{:.{}f}", value, value >= 10.0 ? 1 : 2);
}

std::string shown(const Spread& spread) {
  return fmt::format("{} ({}-{})", shown(spread.median), shown(spread.least), shown(spread.most));
}

std::string words_for_unit(const std::string& unit) {
  if (unit == "gb_per_s") return "GB/s";
  if (unit == "gbit_per_s") return "Gbit/s";
  return unit == "p50_us" ? "us, median" : unit;
}

// Rounds a number for JSON to its significant digits.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

void put(nlohmann::ordered_json& object, const std::string& key, const Spread& spread) {
  object[key] = rounded(spread.median);
  object[key + "_min"] = rounded(spread.least);
  object[key + "_max"] = rounded(spread.most);
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  DROVER_CHECK(!values.empty());
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  const double median =
      sorted.size() % 2 == 1 ? sorted[half] : 0.5 * (sorted[half - 1] + sorted[half]);
  return {median, sorted.front(), sorted.back()};
}

Spread spread_of_ratios(const std::vector<double>& a, const std::vector<double>& b) {
  DROVER_CHECK(a.size() == b.size());
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return spread_of(ratios);
}

std::string to_table(const BenchReport& report) {
  std::string text = report.title + "\n";
  text += fmt::format("{:<14} {:<11} {:>22} {:>8} {:>22} {:>22}\n", "what", "unit",
                      "median (least-most)", "beside", "median (least-most)", "ratio");
  for (const Figure& figure : report.figures) {
    std::string begin = fmt::format("{:<14} {:<11} {:>22}", figure.what,
                                    words_for_unit(figure.unit), shown(spread_of(figure.values)));
    if (figure.beside.empty()) text += begin + "\n";
    for (const Beside& beside : figure.beside) {
      text += fmt::format("{:<49} {:>8} {:>22} {:>22}\n", begin, beside.name,
                          shown(spread_of(beside.values)),
                          shown(spread_of_ratios(figure.values, beside.values)));
      begin.clear();
    }
  }
  for (const std::string& note : report.notes) text += note + "\n";
  return text;
}

nlohmann::ordered_json to_json(const BenchReport& report) {
  nlohmann::ordered_json all = {{"bench", report.bench}, {"settings", report.settings}};
  all["figures"] = nlohmann::ordered_json::array();
  for (const Figure& figure : report.figures) {
    nlohmann::ordered_json line = {{"what", figure.what}};
    put(line, figure.unit, spread_of(figure.values));
    for (const Beside& beside : figure.beside) {
      put(line, beside.name + "_" + figure.unit, spread_of(beside.values));
      put(line, "ratio_to_" + beside.name, spread_of_ratios(figure.values, beside.values));
    }
    if (!figure.further.is_null()) line.update(figure.further);
    all["figures"].push_back(std::move(line));
  }
  return all;
}

void print(const BenchReport& report, bool json) {
  fmt::print("{}", json ? to_json(report).dump() + "\n" : to_table(report));
  std::fflush(stdout);
}

Status check_range(std::string_view flag, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return done();
  return invalid_input(fmt::format("{}: must be from {} to {}, not {}", flag, least, most, value));
}

}  // namespace drover

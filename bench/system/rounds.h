// Common parts of the benchmarks: figures measured in rounds together with their references, and
// reports of them.
//
// A single figure depends on the machine and its other load as much as on the program. So each
// figure is measured in turns with its reference in the same run. A ratio is the median of the
// ratios of all rounds, with minimum and maximum.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace drover {

struct Spread {
  double median = 0.0;
  double least = 0.0;
  double most = 0.0;
};
// REQUIRES: `values` is not empty.
Spread spread_of(const std::vector<double>& values);
// The spread of a[i] / b[i]. REQUIRES: equal sizes, not empty.
Spread spread_of_ratios(const std::vector<double>& a, const std::vector<double>& b);

// A reference that was measured in the same rounds and in the same unit.
struct Beside {
  std::string name;  // "floor", "asio"
  std::vector<double> values;
};

struct Figure {
  std::string what;                // "push"
  std::string unit = "gb_per_s";   // or "p50_us"
  std::vector<double> values;      // one per round
  std::vector<Beside> beside;      // with as many values each
  nlohmann::ordered_json further;  // additional values for JSON
};

struct BenchReport {
  std::string title;                // for people
  std::string bench;                // for programs: "server"
  nlohmann::ordered_json settings;  // the options
  std::vector<Figure> figures;
  std::vector<std::string> notes;  // for people, below the table
};

// A table, or one JSON object.
std::string to_table(const BenchReport& report);
nlohmann::ordered_json to_json(const BenchReport& report);
void print(const BenchReport& report, bool json);

// Gigabytes (1e9) per second.
inline double gb_per_s(double bytes, Duration took) { return bytes / seconds(took) / 1e9; }

// Runs the measurements of one round, in the given order in even rounds and backwards in odd ones,
// so that the predecessor of a measurement varies.
template <typename Measurements>
void take_turns(uint32_t round, const Measurements& measurements) {
  if (round % 2 == 0) {
    for (auto each = measurements.begin(); each != measurements.end(); ++each) (*each)();
  } else {
    for (auto each = measurements.rbegin(); each != measurements.rend(); ++each) (*each)();
  }
}

// "--rounds: must be from 1 to 1000, not 0".
Status check_range(std::string_view flag, uint64_t value, uint64_t least, uint64_t most);

}  // namespace drover

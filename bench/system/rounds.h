// What benchmarks share: figures measured in rounds beside what they are held against, and how they
// are told.
//
// A figure by itself says as much about the machine and its other guests as about the program. So
// each is measured in the same run as its floor, turn and turn about, and a ratio is the median of
// the ratios round by round, with the least and the greatest beside it.
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
// REQUIRES: there are values.
Spread spread_of(const std::vector<double>& values);
// Of a[i] / b[i]. REQUIRES: as many of one as of the other, and some.
Spread spread_of_ratios(const std::vector<double>& a, const std::vector<double>& b);

// Something else that was measured in the same rounds and in the same unit.
struct Beside {
  std::string name;  // "floor", "asio"
  std::vector<double> values;
};

struct Figure {
  std::string what;                // "push"
  std::string unit = "gb_per_s";   // or "p50_us"
  std::vector<double> values;      // one a round
  std::vector<Beside> beside;      // as many values each
  nlohmann::ordered_json further;  // more to be told in JSON
};

struct BenchReport {
  std::string title;                // for people
  std::string bench;                // for programs: "server"
  nlohmann::ordered_json settings;  // what was asked for
  std::vector<Figure> figures;
  std::vector<std::string> notes;  // for people, below the table
};

// A table, or one JSON object.
std::string to_table(const BenchReport& report);
nlohmann::ordered_json to_json(const BenchReport& report);
void print(const BenchReport& report, bool json);

// Gigabytes (1e9) a second.
inline double gb_per_s(double bytes, Duration took) { return bytes / seconds(took) / 1e9; }

// The measurements of one round, in the order written in even rounds and backwards in odd ones, so
// that none always comes after the same other.
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

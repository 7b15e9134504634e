// Makes a large trace for replays: run-times of a cluster with stragglers, as CSV.
//
//   make_trace WORKERS STEPS [SEED] > trace.csv
//
// In the first third of the steps, a tenth of the workers (on the same machines) takes twice as
// long. Each worker has its own speed with noise, and one run-time in twenty has a long tail.
#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>

#include "core/random_draw.h"

namespace drover {
namespace {

double run_time(uint64_t seed, uint64_t step, uint64_t worker, uint64_t workers, uint64_t steps) {
  const auto unit_draw = [&](uint64_t part) {
    return unit_interval(
        draw({seed, static_cast<uint64_t>(Purpose::kRunTimes), step, worker, part}));
  };
  const double own_speed =
      1.0 + 0.05 * unit_interval(draw({seed, static_cast<uint64_t>(Purpose::kRunTimes), worker}));
  const bool shared_machine = worker < workers / 10 && step < steps / 3;
  // The sum of three uniforms approximates a normal distribution.
  const double noise = 0.03 * (unit_draw(0) + unit_draw(1) + unit_draw(2) - 1.5);
  const double tail = unit_draw(3) < 0.05 ? -0.15 * std::log(1.0 - unit_draw(4)) : 0.0;
  return 0.24 * own_speed * (shared_machine ? 2.0 : 1.0) * (1.0 + noise + tail);
}

bool read(const char* text, uint64_t& number) {
  const char* const end = text + std::strlen(text);
  const auto [stop, trouble] = std::from_chars(text, end, number);
  return trouble == std::errc{} && stop == end && number > 0;
}

int make_trace(int argc, char** argv) {
  uint64_t workers = 0;
  uint64_t steps = 0;
  uint64_t seed = 1;
  if (argc < 3 || argc > 4 || !read(argv[1], workers) || !read(argv[2], steps) ||
      (argc == 4 && !read(argv[3], seed))) {
    fmt::print(stderr, "usage: make_trace WORKERS STEPS [SEED] > trace.csv\n");
    return 2;
  }
  std::string line = "step";
  for (uint64_t worker = 0; worker < workers; ++worker) line += fmt::format(",w{}", worker);
  fmt::print("{}\n", line);
  for (uint64_t step = 0; step < steps; ++step) {
    line = std::to_string(step);
    for (uint64_t worker = 0; worker < workers; ++worker) {
      fmt::format_to(std::back_inserter(line), ",{:.6f}",
                     run_time(seed, step, worker, workers, steps));
    }
    fmt::print("{}\n", line);
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace drover

int main(int argc, char** argv) { return drover::make_trace(argc, argv); }

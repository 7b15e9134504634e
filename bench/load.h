// The settings of bench/load, and its two modes.
#pragma once

#include <cstdint>
#include <string>

namespace drover {

struct LoadSettings {
  bool simulate = false;
  uint32_t workers = 500;
  uint32_t shards = 2;
  uint64_t steps = 1'000;
  uint64_t floats = 1'000;  // of a gradient
  std::string policy = "sync";
  std::string transport = "shm";
};

// In its own file, apart from the real run, which uses sockets. Returns the
// exit status.
int run_simulated(const LoadSettings& load);

}  // namespace drover

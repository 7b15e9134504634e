// Names of things: plain numbers, counted from zero.
#pragma once

#include <cstdint>

namespace drover {

using Step = uint64_t;     // Step t turns version t of the parameters into version t + 1.
using Version = uint64_t;  // Version 0 is the initial parameters.
using WorkerId = uint32_t;
using ShardId = uint32_t;
using BlockId = uint32_t;
// In place of a number of steps: as many as workers make.
inline constexpr Step kEndless = 1'000'000'000;

using RunId = uint64_t;  // drawn once per run; tells its frames from a stranger's

}  // namespace drover

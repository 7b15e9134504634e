// Names of things: plain numbers, counted from zero.
#pragma once

#include <cstdint>

namespace drover {

using Step = uint64_t;     // Step t turns version t of the parameters into version t + 1.
using Version = uint64_t;  // Version 0 is the initial parameters.
using WorkerId = uint32_t;
using ShardId = uint32_t;
using BlockId = uint32_t;
// As a number of steps: no limit; the run ends when its workers leave.
inline constexpr Step kEndless = 1'000'000'000;

using RunId = uint64_t;  // drawn once per run; frames of other runs are refused

}  // namespace drover

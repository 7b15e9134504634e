// Injected slowness: rules that slow workers down, repeatably by seed.
//
// Text form (--slow): comma-separated key=value pairs,
//   worker=3,factor=4                 worker 3 takes four times as long
//   share=0.05,delay=200ms            every worker starts 200 ms late in 5 % of its steps
//   worker=0-1,factor=2,steps=0-75    workers 0 and 1, in steps 0 to 75 (both included)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/ids.h"
#include "core/result.h"
#include "core/slow_rule.h"
#include "core/time.h"

namespace drover {

struct Slowness {
  double factor = 1.0;
  Duration delay{};
};

// The error names the invalid key or value, and for an unknown key the nearest known one.
Result<SlowRule> parse_slow_rule(std::string_view text);
std::string to_text(const SlowRule& rule);

// The combined effect of the rules on `worker` in `step`: factors multiply, delays add.
Slowness slowness_of(std::span<const SlowRule> rules, uint64_t seed, Step step, WorkerId worker);

}  // namespace drover

#include "cli/hunt_command.h"

#include <fmt/core.h>

#include <string>

#include "cli/progress.h"
#include "cli/run_report.h"
#include "core/text.h"
#include "launch/launcher.h"
#include "node/interrupts.h"
#include "sim/hunt.h"

namespace drover {
namespace {

void print_finding(uint64_t seed, const HuntCase& hunt, const HuntResult& found) {
  fmt::print("violation: {}\n", found.verdict);
  for (const std::string& line : hunt.description) fmt::print("  {}\n", line);
  fmt::print("Reproduce with:   drover simulate --hunt 1 --seed {}\n", seed);
}

}  // namespace

int hunt_command(const HuntOptions& options) {
  listen_for_interrupts();
  StatusLine progress(choose_progress_style(options.quiet));
  uint64_t completed = 0;
  uint64_t tried = 0;
  for (; tried < options.runs && !interrupted(); ++tried) {
    const uint64_t seed = options.first_seed + tried;
    const HuntCase hunt = make_hunt_case(seed);
    const HuntResult found = run_hunt_case(hunt);
    if (!found.verdict.empty()) {
      progress.clear();
      print_finding(seed, hunt, found);
      return kExitFailed;
    }
    completed += found.end.outcome == RunOutcome::kCompleted ? 1 : 0;
    if (options.runs == 1) {
      for (const std::string& line : hunt.description) fmt::print("  {}\n", line);
    }
    if (progress.style() == ProgressStyle::kTerminal && progress.due()) {
      progress.show([&](size_t width) {
        return join_parts({{progress_bar(tried + 1, options.runs), 1},
                           {fmt::format("{}/{} schedules", tried + 1, options.runs), 3},
                           {"no violation", 2}},
                          width);
      });
    }
  }
  progress.clear();
  const std::string ended =
      completed == tried ? std::string("all runs completed")
                         : fmt::format("{} runs completed, {} failed because of their faults",
                                       with_commas(completed), with_commas(tried - completed));
  if (options.json) {
    fmt::print("{{\"schedules\":{},\"completed\":{},\"found\":0,\"seed\":{}}}\n", tried, completed,
               options.first_seed);
  } else {
    fmt::print("{} random fault schedules from seed {}: no violation found; {}.\n",
               with_commas(tried), options.first_seed, ended);
  }
  return interrupted() ? kExitInterrupted : 0;
}

}  // namespace drover

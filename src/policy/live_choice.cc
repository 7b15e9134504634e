#include "policy/live_choice.h"

#include <fmt/format.h>

#include "policy/wording.h"

namespace drover {

Choice live_choice(std::string_view policy, const LiveStep::Revision& revision,
                   const StepProgress& progress, uint32_t alive) {
  const uint32_t here = revision.arrived;
  const std::string at = fmt::format("{}: at {} with {} of {}", policy,
                                     time_text(progress.now, progress.unit), here, alive);
  if (revision.closes) {
    return Choice{.cutoff = here,
                  .time_limit = progress.now,
                  .at_least = here,
                  .reason = at + ": close the step; the other gradients are not worth the wait"};
  }
  const WaitPlan& plan = revision.plan;
  return Choice{
      .cutoff = plan.arrivals,
      .time_limit = plan.until,
      .at_least = revision.at_least,
      .reason = fmt::format("{}: {} wait for {}{}", at, revision.changed ? "new plan," : "still",
                            worker_count_text(plan.arrivals, alive),
                            time_limit_text(plan.until, progress.unit)),
      .review = revision.next};
}

}  // namespace drover

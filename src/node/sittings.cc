#include "node/sittings.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <thread>

#include "core/chance.h"
#include "core/duration_text.h"
#include "node/back_off.h"
#include "node/clock.h"

namespace drover {

double any_chance() {
  return unit_interval(
      draw({static_cast<uint64_t>(::getpid()), static_cast<uint64_t>(clock_now().count())}));
}

int run_sittings(Duration patience, const std::function<Sitting()>& sit) {
  BackOff back_off(patience);
  for (;;) {
    const Sitting sitting = sit();
    if (!sitting.again) return sitting.exit_status;
    const TimePoint now = clock_now();
    if (sitting.was_in) back_off.was_in();
    const auto wait = back_off.next(now, any_chance());
    if (!wait) {
      spdlog::error("gave up: {}", sitting.why);
      return 1;
    }
    if (*wait > Duration::zero()) {
      spdlog::info("{}; joining again in {}", sitting.why,
                   duration_text(std::chrono::duration_cast<std::chrono::milliseconds>(*wait)));
    }
    std::this_thread::sleep_for(*wait);
  }
}

}  // namespace drover

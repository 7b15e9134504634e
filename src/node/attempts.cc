#include "node/attempts.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <thread>

#include "core/duration_text.h"
#include "core/random_draw.h"
#include "node/back_off.h"
#include "node/clock.h"

namespace drover {

double random_fraction() {
  return unit_interval(
      draw({static_cast<uint64_t>(::getpid()), static_cast<uint64_t>(clock_now().count())}));
}

int run_attempts(Duration patience, const std::function<Attempt()>& try_once) {
  BackOff back_off(patience);
  for (;;) {
    const Attempt attempt = try_once();
    if (!attempt.again) return attempt.exit_status;
    const TimePoint now = clock_now();
    if (attempt.joined) back_off.on_joined();
    const auto wait = back_off.next(now, random_fraction());
    if (!wait) {
      spdlog::error("gave up: {}", attempt.why);
      return 1;
    }
    if (*wait > Duration::zero()) {
      spdlog::info("{}; rejoining in {}", attempt.why,
                   duration_text(std::chrono::duration_cast<std::chrono::milliseconds>(*wait)));
    }
    std::this_thread::sleep_for(*wait);
  }
}

}  // namespace drover

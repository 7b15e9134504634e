// Hunt driver: runs random schedules and reports the first finding: a verdict of the referee, a
// failed check, or a run that never ends. It links only `sim`, so that a planted bug costs one
// compilation and one link.
//
//   hunt_driver RUNS FIRST_SEED
//
// Prints "clean RUNS", or "found N WHAT", where N counts runs from 1, and exits with 0 or 1.
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/hunt.h"

namespace {

// The limit on processor time. A run takes milliseconds.
constexpr int kSecondsPerRun = 20;

uint64_t run = 0;  // the number of the current run, from 1

void report(const char* what) {
  std::printf("found %llu %s\n", static_cast<unsigned long long>(run), what);
  std::fflush(stdout);
}

// Calls functions that are not async-signal-safe. This is acceptable, since the process ends here.
void on_signal(int signal) {
  report(signal == SIGVTALRM ? "the hunt itself hangs" : "the program stops: a check failed");
  _exit(1);
}

void limit_run() {
  const itimerval limit{{0, 0}, {kSecondsPerRun, 0}};
  setitimer(ITIMER_VIRTUAL, &limit, nullptr);
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: hunt_driver RUNS FIRST_SEED\n");
    return 2;
  }
  const uint64_t runs = std::strtoull(words[1], nullptr, 10);
  const uint64_t first = std::strtoull(words[2], nullptr, 10);
  for (const int each : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGVTALRM}) signal(each, on_signal);
  for (run = 1; run <= runs; ++run) {
    limit_run();
    const drover::HuntCase hunt = drover::make_hunt_case(first + run - 1);
    const drover::HuntResult result = drover::run_hunt_case(hunt);
    if (result.verdict.empty()) continue;
    report(result.verdict.c_str());
    return 1;
  }
  std::printf("clean %llu\n", static_cast<unsigned long long>(runs));
  return 0;
}

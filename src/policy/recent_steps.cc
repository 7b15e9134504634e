#include "policy/recent_steps.h"

#include <algorithm>
#include <limits>

namespace drover {

void first_arrivals(const StepTimes& times, std::vector<double>& arrived) {
  arrived.clear();
  double sure_until = std::numeric_limits<double>::infinity();
  for (size_t worker = 0; worker < times.known.size(); ++worker) {
    if (times.known[worker] == Known::kArrived) arrived.push_back(times.seconds[worker]);
    if (times.known[worker] == Known::kLonger) {
      sure_until = std::min(sure_until, times.seconds[worker]);
    }
  }
  std::sort(arrived.begin(), arrived.end());
  arrived.erase(std::upper_bound(arrived.begin(), arrived.end(), sure_until), arrived.end());
}

uint32_t participants(const StepTimes& times) {
  return static_cast<uint32_t>(times.known.size()) -
         static_cast<uint32_t>(std::count(times.known.begin(), times.known.end(), Known::kNothing));
}

}  // namespace drover

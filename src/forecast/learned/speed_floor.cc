#include "forecast/learned/speed_floor.h"

#include <algorithm>

#include "core/check.h"
#include "forecast/run_time.h"

namespace drover {

void SpeedFloor::learn(const StepTimes& times) {
  fastest_.resize(std::max(fastest_.size(), times.seconds.size()), 0.0F);
  for (WorkerId worker = 0; worker < times.seconds.size(); ++worker) {
    if (times.known[worker] != Known::kArrived || !has_run_time(times, worker)) continue;
    const float time = to_run_time(times.seconds[worker]);
    fastest_of_all_ = fastest_of_all_ > 0.0F ? std::min(fastest_of_all_, time) : time;
    float& fastest = fastest_[worker];
    fastest = fastest > 0.0F ? std::min(kForgetting * fastest, time) : time;
  }
}

void SpeedFloor::apply(std::span<const WorkerId> alive, Forecast& forecast) {
  DROVER_CHECK(forecast.workers == alive.size());
  floors_.clear();
  for (const WorkerId worker : alive) {
    const float own = worker < fastest_.size() ? fastest_[worker] : 0.0F;
    floors_.push_back(own > 0.0F ? own : fastest_of_all_);
  }
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    float* const row = forecast.row(k).data();
    for (size_t i = 0; i < floors_.size(); ++i) row[i] = std::max(row[i], floors_[i]);
  }
}

}  // namespace drover

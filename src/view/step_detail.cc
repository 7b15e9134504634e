#include "view/step_detail.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace drover {
namespace {

constexpr size_t kDetailArrivals = 3000;

}  // namespace

Result<std::optional<StepDetail>> read_step(const RunReader& reader, Step step) {
  const auto steps = reader.steps(step, step + 1);
  if (!steps) return steps.error();
  if (steps.value().empty()) return std::optional<StepDetail>();
  auto arrivals = reader.arrivals(step, step + 1);
  if (!arrivals) return arrivals.error();
  auto decisions = reader.decisions(step, step + 1);
  if (!decisions) return decisions.error();
  StepDetail detail;
  detail.decisions = std::move(decisions).value();
  detail.record = steps.value().front();
  detail.facts = facts_of(detail.record, arrivals.value(),
                          detail.decisions.empty() ? nullptr : &detail.decisions.back());
  detail.arrivals = std::move(arrivals).value();
  // A gradient that was not in time came after all others, even if its lower bound is less.
  std::sort(detail.arrivals.begin(), detail.arrivals.end(),
            [](const RecordedArrival& a, const RecordedArrival& b) {
              return std::tuple(!in_time(a), a.arrival.run_time, a.arrival.worker) <
                     std::tuple(!in_time(b), b.arrival.run_time, b.arrival.worker);
            });
  if (const size_t all = detail.arrivals.size(); all > kDetailArrivals) {
    // Evenly spread over the ranks, with the first and the last.
    for (size_t i = 0; i < kDetailArrivals; ++i)
      detail.arrivals[i] = detail.arrivals[i * (all - 1) / (kDetailArrivals - 1)];
    detail.arrivals.resize(kDetailArrivals);
  }
  const auto expected = reader.expected(step);
  if (!expected) return expected.error();
  if (!expected.value().empty()) {
    OrderForecast& forecast = detail.forecast.emplace();
    for (const ExpectedArrival& each : expected.value()) {
      forecast.rank.push_back(each.rank);
      forecast.mean_s.push_back(static_cast<double>(each.mean));
      forecast.low_s.push_back(static_cast<double>(each.low));
      forecast.high_s.push_back(static_cast<double>(each.high));
    }
  }
  return std::optional<StepDetail>(std::move(detail));
}

}  // namespace drover

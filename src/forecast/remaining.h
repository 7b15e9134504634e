// Remaining: a step's forecast, seen from inside the step. Those who have arrived are facts; the
// others are known to take longer than now.
//
// Two things are learned from what has happened so far. About the step: a sample of the forecast in
// which other workers would have arrived by now counts less. Samples are of everybody at once, so
// one in which a slow node is well again, or all are late, is told apart by who is here:
//
//   weight of row k ~ exp(-(H_k - min H) / T),  H_k = number of workers i with
//                     [x_ki <= now] different from [i has arrived],  T = max(1, deviation of H)
//
// About each worker that is missing: it is one of its own samples beyond now, or, since these are
// few just when they matter, as much later than its median as somebody else's sample is than its
// own. A row that has the worker earlier takes such a time for it. Where no sample of anybody is
// late enough nothing is known of it any more, and it is taken never to come.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "forecast/forecast.h"
#include "forecast/sampling.h"

namespace drover {

inline constexpr float kNever = std::numeric_limits<float>::infinity();

// Buffers are kept, so that neither a new step nor looking again allocates.
class Remaining {
 public:
  // A step's forecast. What is more than is needed to look at it again and again is left out.
  // REQUIRES: at least one sample of at least one worker.
  void start(const Forecast& forecast);

  // `arrived` says for every column of the forecast whether its worker is here.
  // If everybody seems to take `stretch` times as long as was forecast, the missing are taken to,
  // too.
  void condition(const std::vector<bool>& arrived, double now, DrawStream draws,
                 double stretch = 1.0);

  uint32_t workers() const { return forecast_.workers; }
  // What was forecast of a worker, by column.
  double median(uint32_t column) const { return static_cast<double>(medians_[column]); }
  // Columns of the forecast that are missing, ascending.
  std::span<const uint32_t> missing() const { return missing_; }
  uint32_t samples() const { return forecast_.samples; }
  // Times of those missing, all later than now; kNever where nothing is known.
  std::span<const float> row(uint32_t sample) const {
    return std::span(times_).subspan(size_t{sample} * missing_.size(), missing_.size());
  }
  // By sample; they sum to 1.
  std::span<const double> weights() const { return weights_; }

 private:
  void find_medians();
  void weigh(const std::vector<bool>& arrived, float now);
  float beyond(uint32_t column, float now, DrawStream& draws);

  Forecast forecast_;
  std::vector<float> medians_;   // by column
  std::vector<float> excesses_;  // some of all samples over their column's median, ascending
  std::vector<uint32_t> missing_;
  std::vector<float> times_;
  std::vector<double> weights_;
  std::vector<float> column_;  // of the worker at hand
};

}  // namespace drover

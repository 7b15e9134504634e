// Remaining: the forecast of an open step, conditioned on the arrivals so far.
//
// Arrivals change the weights of the samples. A sample in which other workers would have arrived by
// now gets a lower weight. A sample contains all workers, so this recognises, for example, a node
// that has recovered, or a step in which all workers are late:
//
//   weight of row k ~ exp(-(H_k - min H) / T),  H_k = number of workers i with
//                     [x_ki <= now] different from [i has arrived],  T = max(1, deviation of H)
//
// A missing worker takes longer than now. A sample with an earlier time for it gets a new time: one
// of the worker's own samples later than now, or the worker's median times the ratio of another
// worker's sample to that worker's median. The second kind is needed because own samples are few in
// the tail. If no sample of any worker is late enough, the worker is assumed never to arrive.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "forecast/forecast.h"
#include "forecast/sampling.h"

namespace drover {

inline constexpr float kNever = std::numeric_limits<float>::infinity();

// Keeps its buffers, so that neither a new step nor a review allocates.
class Remaining {
 public:
  // Starts a step with its forecast. Keeps a subset of the samples, because reviews are frequent.
  // REQUIRES: at least one sample of at least one worker.
  void start(const Forecast& forecast);

  // Conditions the forecast on the arrivals until `now`. `arrived` says for each column of the
  // forecast whether its worker has arrived. `stretch` is the estimated ratio of all run-times to
  // their forecasts; it multiplies those of the missing workers.
  void condition(const std::vector<bool>& arrived, double now, DrawStream draws,
                 double stretch = 1.0);

  uint32_t workers() const { return forecast_.workers; }
  // The median forecast of a column.
  double median(uint32_t column) const { return static_cast<double>(medians_[column]); }
  // Columns of the forecast that are missing, ascending.
  std::span<const uint32_t> missing() const { return missing_; }
  uint32_t samples() const { return forecast_.samples; }
  // Times of the missing workers, all later than now; kNever if no sample is.
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
  std::vector<float> excesses_;  // ratios of samples to their column's median, ascending
  std::vector<uint32_t> missing_;
  std::vector<float> times_;
  std::vector<double> weights_;
  std::vector<float> column_;  // samples of one worker
};

}  // namespace drover

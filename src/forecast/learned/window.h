// Window: a ring of the newest steps, as input of the encoder.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/ids.h"

namespace drover {

class Window {
 public:
  // Holds `steps` steps, each with a projection and the values it was computed from, which amending
  // needs. `inputs` is 0 if projections are never amended.
  Window(uint32_t steps, uint32_t projection, uint32_t inputs)
      : projection_(projection),
        inputs_(inputs),
        steps_(steps),
        projections_(size_t{steps} * projection),
        values_(size_t{steps} * inputs),
        bounds_(size_t{steps} * inputs),
        newest_last_(steps) {}

  // Adds a step; replaces the oldest if the window is full.
  void push(Step step) {
    begin_ = count_ == steps_.size() ? (begin_ + 1) % steps_.size() : begin_;
    count_ += count_ < steps_.size() ? 1 : 0;
    steps_[place(count_ - 1)] = step;
  }

  size_t size() const { return count_; }
  // Counted from the oldest.
  Step step(size_t i) const { return steps_[place(i)]; }
  std::span<float> projection(size_t i) { return part(projections_, i, projection_); }
  std::span<float> values(size_t i) { return part(values_, i, inputs_); }
  // By worker: lower bound of a run-time that may still come late; infinite if none is expected.
  std::span<float> bounds(size_t i) { return part(bounds_, i, inputs_); }

  // All projections, oldest first.
  std::span<const float* const> projections() {
    for (size_t i = 0; i < count_; ++i) newest_last_[i] = projection(i).data();
    return std::span(newest_last_).first(count_);
  }

 private:
  size_t place(size_t i) const { return (begin_ + i) % steps_.size(); }
  std::span<float> part(std::vector<float>& all, size_t i, uint32_t size) {
    return std::span(all).subspan(place(i) * size, size);
  }

  const uint32_t projection_;
  const uint32_t inputs_;
  size_t begin_ = 0;
  size_t count_ = 0;
  std::vector<Step> steps_;
  std::vector<float> projections_;
  std::vector<float> values_;
  std::vector<float> bounds_;
  std::vector<const float*> newest_last_;
};

}  // namespace drover

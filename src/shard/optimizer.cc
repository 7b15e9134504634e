#include "shard/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "shard/kernels.h"

#if defined(__GNUC__) && !defined(__clang__) && !defined(__NO_MATH_ERRNO__)
#error "compile this file with -O3 -ffp-contract=off -fno-math-errno; kernels.h says why"
#endif

namespace drover {
namespace {

// The mean gradient is computed in chunks of this many elements, and used while the chunk is in the
// first-level cache. So summing, updating and averaging take one pass over memory. With short
// chunks the processor prefetches all streams: from main memory, chunks of 256 floats are about 1.4
// times as fast as chunks of 2048 (Adam 35 against 24 GB/s on a Zen 4).
constexpr size_t kChunkFloats = 256;

// The factors of one update, computed in double precision.
struct Factors {
  float rate = 0;          // lr, for Adam lr / (1 - b1^t)
  float decay = 0;         // wd, for AdamW lr wd
  float momentum = 0;      // mu or b1
  float momentum_new = 0;  // 1 - b1
  float squares = 0;       // a or b2
  float squares_new = 0;   // 1 - a or 1 - b2
  float unbias = 0;        // 1 / sqrt(1 - b2^t)
  float epsilon = 0;
};

// The update rules over one chunk, with the formulas of the header. Raw restricted pointers as in
// kernels.cc.

DROVER_KERNEL
void sgd(const float* __restrict gradient, const float* __restrict now, float* __restrict next,
         const Factors f, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i] + f.decay * now[i];
    next[i] = now[i] - f.rate * g;
  }
}

DROVER_KERNEL
void heavy_ball(const float* __restrict gradient, const float* __restrict now,
                float* __restrict next, float* __restrict momentum, const Factors f, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i] + f.decay * now[i];
    const float b = f.momentum * momentum[i] + g;
    momentum[i] = b;
    next[i] = now[i] - f.rate * b;
  }
}

DROVER_KERNEL
void nesterov(const float* __restrict gradient, const float* __restrict now, float* __restrict next,
              float* __restrict momentum, const Factors f, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i] + f.decay * now[i];
    const float b = f.momentum * momentum[i] + g;
    momentum[i] = b;
    next[i] = now[i] - f.rate * (g + f.momentum * b);
  }
}

DROVER_KERNEL
void rms_prop(const float* __restrict gradient, const float* __restrict now, float* __restrict next,
              float* __restrict squares, const Factors f, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i] + f.decay * now[i];
    const float v = f.squares * squares[i] + f.squares_new * (g * g);
    squares[i] = v;
    next[i] = now[i] - f.rate * (g / (std::sqrt(v) + f.epsilon));
  }
}

DROVER_KERNEL
void rms_prop_momentum(const float* __restrict gradient, const float* __restrict now,
                       float* __restrict next, float* __restrict momentum,
                       float* __restrict squares, const Factors f, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i] + f.decay * now[i];
    const float v = f.squares * squares[i] + f.squares_new * (g * g);
    const float b = f.momentum * momentum[i] + g / (std::sqrt(v) + f.epsilon);
    squares[i] = v;
    momentum[i] = b;
    next[i] = now[i] - f.rate * b;
  }
}

DROVER_KERNEL
void adam(const float* __restrict gradient, const float* __restrict now, float* __restrict next,
          float* __restrict momentum, float* __restrict squares, const Factors f, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i] + f.decay * now[i];
    const float m = f.momentum * momentum[i] + f.momentum_new * g;
    const float v = f.squares * squares[i] + f.squares_new * (g * g);
    momentum[i] = m;
    squares[i] = v;
    next[i] = now[i] - f.rate * (m / (std::sqrt(v) * f.unbias + f.epsilon));
  }
}

DROVER_KERNEL
void adam_w(const float* __restrict gradient, const float* __restrict now, float* __restrict next,
            float* __restrict momentum, float* __restrict squares, const Factors f, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float m = f.momentum * momentum[i] + f.momentum_new * g;
    const float v = f.squares * squares[i] + f.squares_new * (g * g);
    momentum[i] = m;
    squares[i] = v;
    const float decayed = now[i] - f.decay * now[i];
    next[i] = decayed - f.rate * (m / (std::sqrt(v) * f.unbias + f.epsilon));
  }
}

bool keeps_momentum(const OptimizerSettings& settings) {
  switch (settings.kind) {
    case OptimizerKind::kSgd:
      return false;
    case OptimizerKind::kRmsProp:
      return settings.rms_momentum > 0.0;
    case OptimizerKind::kMomentum:
    case OptimizerKind::kNesterov:
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return true;
  }
  return false;
}

bool keeps_squares(OptimizerKind kind) {
  return kind == OptimizerKind::kRmsProp || kind == OptimizerKind::kAdam ||
         kind == OptimizerKind::kAdamW;
}

float narrow(double value) { return static_cast<float>(value); }

// base^exponent by multiplication: pow() differs between C libraries.
double power(double base, uint64_t exponent) {
  double result = 1.0;
  for (double square = base; exponent > 0; exponent /= 2, square *= square) {
    if (exponent % 2 == 1) result *= square;
  }
  return result;
}

Factors factors_of(const OptimizerSettings& settings, double learning_rate, double beta1_power,
                   double beta2_power) {
  Factors f{.rate = narrow(learning_rate),
            .decay = narrow(settings.weight_decay),
            .momentum = narrow(settings.momentum),
            .epsilon = narrow(settings.epsilon)};
  switch (settings.kind) {
    case OptimizerKind::kSgd:
    case OptimizerKind::kMomentum:
    case OptimizerKind::kNesterov:
      break;
    case OptimizerKind::kRmsProp:
      f.momentum = narrow(settings.rms_momentum);
      f.squares = narrow(settings.rms_decay);
      f.squares_new = narrow(1.0 - settings.rms_decay);
      break;
    case OptimizerKind::kAdamW:
      f.decay = narrow(learning_rate * settings.weight_decay);
      [[fallthrough]];
    case OptimizerKind::kAdam:
      f.rate = narrow(learning_rate / (1.0 - beta1_power));
      f.momentum = narrow(settings.beta1);
      f.momentum_new = narrow(1.0 - settings.beta1);
      f.squares = narrow(settings.beta2);
      f.squares_new = narrow(1.0 - settings.beta2);
      f.unbias = narrow(1.0 / std::sqrt(1.0 - beta2_power));
      break;
  }
  return f;
}

}  // namespace

BlockOptimizer::BlockOptimizer(const OptimizerSettings& settings, TensorKind kind, size_t length)
    : settings_(settings),
      kind_(kind),
      length_(length),
      average_(kind == TensorKind::kTrained && settings.ema_decay > 0.0 ? length : 0) {
  allocate_state();
}

void BlockOptimizer::allocate_state() {
  if (kind_ != TensorKind::kTrained) return;
  if (keeps_momentum(settings_) && momentum_.size() == 0) momentum_ = FloatBuffer(length_);
  if (keeps_squares(settings_.kind) && squares_.size() == 0) squares_ = FloatBuffer(length_);
}

void BlockOptimizer::use(const OptimizerSettings& settings) {
  if (settings.beta1 != settings_.beta1) beta1_power_ = power(settings.beta1, updates_);
  if (settings.beta2 != settings_.beta2) beta2_power_ = power(settings.beta2, updates_);
  const double ema_decay = settings_.ema_decay;
  settings_ = settings;
  settings_.ema_decay = ema_decay;
  allocate_state();
}

void BlockOptimizer::start(std::span<const float> initial) {
  DROVER_CHECK(!started_);
  DROVER_CHECK(initial.size() == length_);
  started_ = true;
  std::copy_n(initial.data(), average_.size(), average_.data());
}

void BlockOptimizer::restore(const SavedBlock& saved) {
  DROVER_CHECK(!started_);
  started_ = true;
  updates_ = saved.updates;
  beta1_power_ = saved.beta1_power;
  beta2_power_ = saved.beta2_power;
  const auto take = [&](const ConstBuffer& from, FloatBuffer& into) {
    // What belongs to settings that come with a step, see use().
    if (from && into.size() == 0 && &into != &average_) into = FloatBuffer(length_);
    if (into.size() == 0) return;
    DROVER_CHECK(from && from->size() == into.size());
    std::copy_n(from->data(), into.size(), into.data());
  };
  take(saved.momentum, momentum_);
  take(saved.squares, squares_);
  take(saved.average, average_);
}

void BlockOptimizer::save(SavedBlock& saved, BufferPool& pool) const {
  saved.updates = updates_;
  saved.beta1_power = beta1_power_;
  saved.beta2_power = beta2_power_;
  const auto copy = [&](const FloatBuffer& from) -> ConstBuffer {
    if (from.size() == 0) return nullptr;
    SharedBuffer made = pool.take(from.size());
    std::copy_n(from.data(), from.size(), made->data());
    return made;
  };
  saved.momentum = copy(momentum_);
  saved.squares = copy(squares_);
  saved.average = copy(average_);
}

double BlockOptimizer::apply(const GradientSum& sum, double learning_rate,
                             std::span<const float> now, std::span<float> next, double scale) {
  DROVER_CHECK(started_);
  DROVER_CHECK(sum.length() == length_);
  DROVER_CHECK(now.size() == length_);
  DROVER_CHECK(next.size() == length_);
  const bool in_place = next.data() == now.data() && length_ > 0;
  DROVER_CHECK(!in_place);
  if (sum.contributors() == 0) {
    std::copy_n(now.data(), length_, next.data());
    return 0.0;
  }
  ++updates_;
  if (kind_ == TensorKind::kAveraged) {
    average(sum, next);
    return 0.0;
  }

  beta1_power_ *= settings_.beta1;
  beta2_power_ *= settings_.beta2;
  const Factors factors = factors_of(settings_, learning_rate, beta1_power_, beta2_power_);
  const auto t = static_cast<double>(updates_);
  const float share = narrow(1.0 - std::min(settings_.ema_decay, (1.0 + t) / (10.0 + t)));
  const bool follow = average_.size() > 0;
  const bool measure = sum.contributors() >= 2;
  SquareSum squares;

  alignas(64) std::array<float, kChunkFloats> mean;
  for (size_t begin = 0; begin < length_; begin += kChunkFloats) {
    const size_t size = std::min(kChunkFloats, length_ - begin);
    if (measure) {
      sum.write_mean(begin, {mean.data(), size}, squares);
    } else {
      sum.write_mean(begin, {mean.data(), size});
    }
    if (scale != 1.0) {
      for (size_t i = 0; i < size; ++i) mean[i] *= narrow(scale);
    }
    const float* p = now.data() + begin;
    float* q = next.data() + begin;
    float* b = momentum_.size() > 0 ? momentum_.data() + begin : nullptr;
    float* v = squares_.size() > 0 ? squares_.data() + begin : nullptr;
    switch (settings_.kind) {
      case OptimizerKind::kSgd:
        sgd(mean.data(), p, q, factors, size);
        break;
      case OptimizerKind::kMomentum:
        heavy_ball(mean.data(), p, q, b, factors, size);
        break;
      case OptimizerKind::kNesterov:
        nesterov(mean.data(), p, q, b, factors, size);
        break;
      case OptimizerKind::kRmsProp:
        if (b == nullptr) {
          rms_prop(mean.data(), p, q, v, factors, size);
        } else {
          rms_prop_momentum(mean.data(), p, q, b, v, factors, size);
        }
        break;
      case OptimizerKind::kAdam:
        adam(mean.data(), p, q, b, v, factors, size);
        break;
      case OptimizerKind::kAdamW:
        adam_w(mean.data(), p, q, b, v, factors, size);
        break;
    }
    if (follow) move_towards(average_.span().subspan(begin, size), {q, size}, share);
  }
  return squares.total();
}

void BlockOptimizer::average(const GradientSum& sum, std::span<float> next) const {
  for (size_t begin = 0; begin < length_; begin += kChunkFloats) {
    sum.write_mean(begin, next.subspan(begin, std::min(kChunkFloats, length_ - begin)));
  }
}

}  // namespace drover

// Common code of the vectorised passes. Only their source files may include it. They are compiled
// once for each CPU generation (forecast/CMakeLists.txt), and all names are in a namespace of the
// build, so that the linker cannot mix the builds. For the same reason these files avoid containers
// and algorithms of the standard library; a test checks their symbols.
#pragma once

#ifndef DROVER_BUILD
#define DROVER_BUILD baseline
#endif

#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>
#include <cmath>
#include <cstdint>

#include "forecast/learned/model_weights.h"
#include "forecast/learned/worker_block.h"

namespace drover::DROVER_BUILD {

using Matrix = Eigen::MatrixXf;  // column by column
using Row = Eigen::RowVectorXf;
using Vector = Eigen::VectorXf;
using Lane = Eigen::Array<float, kBlock, 1>;
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The tensor's transpose: a layer is then (samples or workers) x inputs times inputs x outputs.
inline Matrix transposed(const Tensor& tensor) {
  return Eigen::Map<const Matrix>(tensor.values.data(), tensor.columns, tensor.rows);
}
inline Row bias(const Tensor& tensor) {
  return Eigen::Map<const Row>(tensor.values.data(), tensor.columns);
}

// log(1 + exp(x)), without overflow.
template <typename Derived>
auto softplus(const Eigen::ArrayBase<Derived>& x) {
  return x.max(0.0F) + (1.0F + (-x.abs()).exp()).log();
}

// The two halves of the normal quantile function. The caller computes the logarithm between them:
//   quantile(u) = from_log(u, log(before_log(u)))
// After M. Giles, Approximating the erfinv function (GPU Computing Gems 2, 2011), in floats:
//   erfinv(x) = x p(w), w = -log((1 - x)(1 + x)), here with x = 2u - 1, so w = -log(4u(1 - u)).
// Numbers closer to 0 or 1 than 2^-24 count as that close: 5.4 standard deviations.
inline float inside(float u) {
  constexpr float kEdge = 0x1.0p-24F;
  const float above = u > kEdge ? u : kEdge;
  return above < 1.0F - kEdge ? above : 1.0F - kEdge;
}
inline float before_log(float u) { return 4.0F * u * (1.0F - u); }
inline float from_log(float u, float log) {
  const float w = -log;
  const float c = w - 2.5F;
  float center = 2.81022636e-08F;
  center = center * c + 3.43273939e-07F;
  center = center * c - 3.5233877e-06F;
  center = center * c - 4.39150654e-06F;
  center = center * c + 0.00021858087F;
  center = center * c - 0.00125372503F;
  center = center * c - 0.00417768164F;
  center = center * c + 0.246640727F;
  center = center * c + 1.50140941F;
  const float t = std::sqrt(w > 0.0F ? w : 0.0F) - 3.0F;
  float tail = -0.000200214257F;
  tail = tail * t + 0.000100950558F;
  tail = tail * t + 0.00134934322F;
  tail = tail * t - 0.00367342844F;
  tail = tail * t + 0.00573950773F;
  tail = tail * t - 0.0076224613F;
  tail = tail * t + 0.00943887047F;
  tail = tail * t + 1.00167406F;
  tail = tail * t + 2.83297682F;
  constexpr float kSqrt2 = 1.41421356F;
  return kSqrt2 * (2.0F * u - 1.0F) * (w < 5.0F ? center : tail);
}

// Limits the log of a run-time to the range of floats, since weights may be arbitrary. NaN becomes
// the lower end.
inline float safe_log(float value) {
  constexpr float kMost = 80.0F;
  const float above = value > -kMost ? value : -kMost;
  return above < kMost ? above : kMost;
}

// Computes whole vectors always, so that the result does not depend on the alignment of the target.
inline void store_exp(Lane& logs, uint32_t count, float* times) {
  logs = logs.exp();
  if (count == kBlock) {
    Eigen::Map<Lane>(times, kBlock) = logs;
  } else {
    for (uint32_t i = 0; i < count; ++i) times[i] = logs[i];
  }
}

// u_k of every worker of the block.
inline void uniforms(const BlockOrders& orders, uint32_t k, uint32_t bits, Lane& u) {
  const float part = 1.0F / static_cast<float>(1U << bits);
  for (uint32_t i = 0; i < kBlock; ++i) {
    const uint16_t stratum =
        stratum_of(static_cast<uint16_t>(k), orders.flip[i], orders.first_odd[i],
                   orders.second_odd[i], orders.turn[i], bits);
    u[i] = (static_cast<float>(stratum) + orders.jitter[i]) * part;
  }
}

}  // namespace drover::DROVER_BUILD

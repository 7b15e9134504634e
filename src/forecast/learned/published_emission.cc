#include "forecast/learned/published_emission.h"

#include "core/check.h"
#include "forecast/learned/builds.h"
#include "forecast/learned/vector_math.h"

namespace drover::DROVER_BUILD {
namespace {

using Eigen::Index;

constexpr Index kSamples = 64;
constexpr float kLeastScale = 0.001F;

class PublishedEmissionPass final : public PublishedEmission {
 public:
  explicit PublishedEmissionPass(const ModelWeights& weights)
      : latent_(weights.shape.latent),
        normal_mean_(bias(weights.tensor("normal_mean"))),
        normal_scale_(weights.tensor("normal_scale").values[0]),
        emit_(transposed(weights.tensor("emit"))),
        emit_bias_(bias(weights.tensor("emit_bias"))),
        emit_mean_(transposed(weights.tensor("emit_mean"))),
        emit_mean_bias_(bias(weights.tensor("emit_mean_bias"))),
        emit_scale_(transposed(weights.tensor("emit_scale"))),
        emit_scale_bias_(bias(weights.tensor("emit_scale_bias"))),
        mean_weights_(emit_.cols(), Index{kBlock}),
        scale_weights_(emit_.cols(), Index{kBlock}),
        means_(Index{kBlock}, kSamples),
        scales_(Index{kBlock}, kSamples) {
    mean_weights_.setZero();
    scale_weights_.setZero();
  }

  void set_state(std::span<const float> z, uint32_t samples) override {
    DROVER_CHECK(z.size() == static_cast<size_t>(latent_) * samples);
    const Eigen::Map<const Matrix> state(z.data(), Index{samples}, latent_);
    hidden_.resize(emit_.cols(), Index{samples});
    for (Index begin = 0; begin < hidden_.cols(); begin += kSamples) {
      const Index count = hidden_.cols() - begin < kSamples ? hidden_.cols() - begin : kSamples;
      auto part = hidden_.middleCols(begin, count);
      part.noalias() = emit_.transpose() * state.middleRows(begin, count).transpose();
      part.colwise() += emit_bias_.transpose();
      part = part.cwiseMax(0.0F);
    }
  }

  void sample(const WorkerBlock& block, const SampleTarget& target) override {
    DROVER_CHECK(Index{target.samples} == hidden_.cols());
    Lane mean_bias = Lane::Zero();
    Lane scale_bias = Lane::Zero();
    Lane center = Lane::Zero();
    for (uint32_t i = 0; i < block.count; ++i) {
      const Index id = block.ids[i];
      mean_weights_.col(i) = emit_mean_.col(id);
      scale_weights_.col(i) = emit_scale_.col(id);
      mean_bias[i] = emit_mean_bias_[id];
      scale_bias[i] = emit_scale_bias_[id];
      center[i] = normal_mean_[id];
    }
    const uint32_t bits = strata_bits(target.samples);
    for (Index begin = 0; begin < hidden_.cols(); begin += kSamples) {
      const Index count = hidden_.cols() - begin < kSamples ? hidden_.cols() - begin : kSamples;
      const auto hidden = hidden_.middleCols(begin, count);
      means_.leftCols(count).noalias() = mean_weights_.transpose() * hidden;
      scales_.leftCols(count).noalias() = scale_weights_.transpose() * hidden;
      for (Index k = 0; k < count; ++k) {
        const auto sample = static_cast<uint32_t>(begin + k);
        Lane u;
        uniforms(block.orders, sample, bits, u);
        Lane log;
        for (Index i = 0; i < Index{kBlock}; ++i) {
          u[i] = inside(u[i]);
          log[i] = before_log(u[i]);
        }
        log = log.log();
        const Lane mean = means_.col(k).array() + mean_bias;
        const Lane scale = softplus(scales_.col(k).array() + scale_bias) + kLeastScale;
        for (Index i = 0; i < Index{kBlock}; ++i) {
          const float value = mean[i] + scale[i] * from_log(u[i], log[i]);
          log[i] = safe_log(value * normal_scale_ + center[i]);
        }
        store_exp(log, block.count, target.times + sample * target.stride);
      }
    }
  }

 private:
  const Index latent_;
  const Row normal_mean_;
  const float normal_scale_;
  const Matrix emit_;
  const Row emit_bias_;
  const Matrix emit_mean_;  // a column for each output
  const Row emit_mean_bias_;
  const Matrix emit_scale_;
  const Row emit_scale_bias_;
  // Scratch.
  Matrix hidden_;  // a column for each sample
  Matrix mean_weights_;
  Matrix scale_weights_;
  Matrix means_;
  Matrix scales_;
};

}  // namespace

std::unique_ptr<PublishedEmission> make_published_emission(const ModelWeights& weights) {
  return std::make_unique<PublishedEmissionPass>(weights);
}

}  // namespace drover::DROVER_BUILD

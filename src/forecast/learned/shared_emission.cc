#include "forecast/learned/shared_emission.h"

#include "core/check.h"
#include "forecast/learned/builds.h"
#include "forecast/learned/vector_math.h"

namespace drover::DROVER_BUILD {
namespace {

using Eigen::Index;

constexpr Index kWorkers = kBlock;
constexpr Index kFeatures = kFeatureCount;
// Samples per block, so that the shifts by z fit into the first-level cache.
constexpr Index kSamples = 64;

// Component c of the mixture is
//   chosen where u >= from; then u is stretched to the whole interval by slope u + shift
//   its log times have this mean and scale
struct Component {
  Lane from;
  Lane slope;
  Lane shift;
  Lane mean;
  Lane scale;
};

class SharedEmissionPass final : public SharedEmission {
 public:
  explicit SharedEmissionPass(const ModelWeights& weights)
      : latent_(weights.shape.latent),
        components_(weights.shape.components),
        inputs_(kFeatures + Index{weights.shape.embedding}),
        embedding_(transposed(weights.tensor("embedding"))),
        pool_1_(transposed(weights.tensor("pool_1"))),
        pool_1_bias_(bias(weights.tensor("pool_1_bias"))),
        pool_2_(transposed(weights.tensor("pool_2"))),
        pool_2_bias_(bias(weights.tensor("pool_2_bias"))),
        worker_1_(transposed(weights.tensor("worker_1"))),
        worker_1_bias_(bias(weights.tensor("worker_1_bias"))),
        worker_2_(transposed(weights.tensor("worker_2"))),
        worker_2_bias_(bias(weights.tensor("worker_2_bias"))),
        x_(kWorkers, inputs_ + 2),
        pool_hidden_(kWorkers, pool_1_.cols()),
        pooled_(pool_1_.cols()),
        hidden_(kWorkers, worker_1_.cols()),
        out_(kWorkers, worker_2_.cols()),
        loadings_(kWorkers, latent_),
        shifts_(kWorkers, kSamples),
        mixture_(new Component[static_cast<size_t>(components_) + 1]) {
    x_.setZero();
    mixture_[static_cast<size_t>(components_)].from.setConstant(2.0F);  // no u is there
  }

  void begin_pooling() override {
    pooled_.setZero();
    pooled_count_ = 0.0F;
  }

  void pool(const WorkerBlock& block, const BlockOutcome& outcome) override {
    const auto count = static_cast<Index>(block.count);
    describe(block);
    for (Index i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      const WorkerView& view = block.views[at];
      x_(i, inputs_) = (outcome.log_time[at] - view.anchors[kMidAnchor]) / view.scale;
      x_(i, inputs_ + 1) = outcome.cut_short[at];
    }
    // squash()
    auto surprise = x_.col(inputs_).array();
    surprise = surprise.sign() * (1.0F + surprise.abs()).log();
    pool_hidden_.noalias() = x_ * pool_1_;
    pool_hidden_.rowwise() += pool_1_bias_;
    pooled_ += pool_hidden_.topRows(count).cwiseMax(0.0F).colwise().sum();
    pooled_count_ += static_cast<float>(count);
  }

  void end_pooling(std::span<float> v) override {
    DROVER_CHECK(static_cast<Index>(v.size()) == pool_2_.cols());
    if (pooled_count_ > 0.0F) pooled_ /= pooled_count_;
    Eigen::Map<Row> out(v.data(), pool_2_.cols());
    out.noalias() = pooled_ * pool_2_;
    out += pool_2_bias_;
  }

  void sample(const WorkerBlock& block, std::span<const float> z,
              const SampleTarget& target) override {
    DROVER_CHECK(z.size() == static_cast<size_t>(latent_) * target.samples);
    describe(block);
    hidden_.noalias() = x_.leftCols(inputs_) * worker_1_;
    hidden_.rowwise() += worker_1_bias_;
    hidden_ = hidden_.cwiseMax(0.0F);
    out_.noalias() = hidden_ * worker_2_;
    out_.rowwise() += worker_2_bias_;
    mix(block);
    const uint32_t bits = strata_bits(target.samples);
    const auto samples = Index{target.samples};
    const Eigen::Map<const Matrix> state(z.data(), samples, latent_);
    for (Index begin = 0; begin < samples; begin += kSamples) {
      const Index count = samples - begin < kSamples ? samples - begin : kSamples;
      shifts_.leftCols(count).noalias() = loadings_ * state.middleRows(begin, count).transpose();
      for (Index k = 0; k < count; ++k) {
        const auto sample = static_cast<uint32_t>(begin + k);
        sample_row(block, shifts_.col(k).data(), sample, bits,
                   target.times + sample * target.stride);
      }
    }
  }

 private:
  // [f_i e_i] of every worker.
  void describe(const WorkerBlock& block) {
    for (Index i = 0; i < static_cast<Index>(block.count); ++i) {
      const auto at = static_cast<size_t>(i);
      x_.row(i).head(kFeatures) = Eigen::Map<const Row>(block.views[at].features.data(), kFeatures);
      auto embedding = x_.row(i).segment(kFeatures, embedding_.rows());
      const Index id = block.ids[at];
      if (id < embedding_.cols()) {
        embedding = embedding_.col(id).transpose();
      } else {
        embedding.setZero();
      }
    }
  }

  auto output(Index i) { return out_.col(i).array(); }

  // Makes the mixture and the loadings of the network's output.
  void mix(const WorkerBlock& block) {
    std::array<Lane, kAnchorCount> anchors;
    Lane scale;
    for (size_t i = 0; i < kBlock; ++i) {
      for (size_t a = 0; a < kAnchorCount; ++a) {
        anchors[a][static_cast<Index>(i)] = block.views[i].anchors[a];
      }
      scale[static_cast<Index>(i)] = block.views[i].scale;
    }
    const auto each = static_cast<Index>(outputs_per_component());
    Lane most = output(0);
    for (Index c = 1; c < components_; ++c) most = most.max(output(c * each));
    Lane sum = Lane::Zero();
    for (Index c = 0; c < components_; ++c) {
      output(c * each) = (output(c * each) - most).exp();
      sum += output(c * each);
    }
    Lane before = Lane::Zero();
    for (Index c = 0; c < components_; ++c) {
      const Index at = c * each;
      Component& component = mixture_[static_cast<size_t>(c)];
      const Lane weight = output(at) / sum;
      component.from = before;
      component.slope = weight.max(1e-30F).inverse();
      component.shift = -before * component.slope;
      before += weight;
      // softmax(anchor logits) . a
      Lane largest = output(at + 1);
      for (Index a = 1; a < Index{kAnchorCount}; ++a) largest = largest.max(output(at + 1 + a));
      Lane total = Lane::Zero();
      Lane mean = Lane::Zero();
      for (Index a = 0; a < Index{kAnchorCount}; ++a) {
        const Lane part = (output(at + 1 + a) - largest).exp();
        total += part;
        mean += part * anchors[static_cast<size_t>(a)];
      }
      component.mean = mean / total + scale * output(at + 1 + kAnchorCount);
      component.scale = scale * output(at + 2 + kAnchorCount).max(-5.0F).min(5.0F).exp();
    }
    for (Index j = 0; j < latent_; ++j) {
      loadings_.col(j).array() = scale * output(components_ * each + j);
    }
  }

  void sample_row(const WorkerBlock& block, const float* shifts, uint32_t k, uint32_t bits,
                  float* times) {
    Lane u;
    Lane mean;
    Lane scale;
    Lane log;
    uniforms(block.orders, k, bits, u);
    choose(u, mean, scale);
    for (Index i = 0; i < kWorkers; ++i) log[i] = before_log(u[i]);
    log = log.log();
    for (Index i = 0; i < kWorkers; ++i) {
      log[i] = safe_log(mean[i] + shifts[i] + scale[i] * from_log(u[i], log[i]));
    }
    store_exp(log, block.count, times);
  }

  // The component that each u falls into; u becomes the place within it.
  void choose(Lane& u, Lane& mean, Lane& scale) const {
    Lane slope;
    Lane shift;
    // Sums with a share of 1 for the component and 0 for the others: conditions on what is read or
    // written are what vectors cannot do well.
    const Component& first = mixture_[0];
    const Component& second = mixture_[1];
    for (Index i = 0; i < kWorkers; ++i) {
      const float share = u[i] >= second.from[i] ? 0.0F : 1.0F;
      slope[i] = share * first.slope[i];
      shift[i] = share * first.shift[i];
      mean[i] = share * first.mean[i];
      scale[i] = share * first.scale[i];
    }
    for (Index c = 1; c < components_; ++c) {
      const Component& here = mixture_[static_cast<size_t>(c)];
      const Component& next = mixture_[static_cast<size_t>(c + 1)];
      for (Index i = 0; i < kWorkers; ++i) {
        const float share =
            (u[i] >= here.from[i] ? 1.0F : 0.0F) - (u[i] >= next.from[i] ? 1.0F : 0.0F);
        slope[i] += share * here.slope[i];
        shift[i] += share * here.shift[i];
        mean[i] += share * here.mean[i];
        scale[i] += share * here.scale[i];
      }
    }
    for (Index i = 0; i < kWorkers; ++i) u[i] = inside(slope[i] * u[i] + shift[i]);
  }

  const Index latent_;
  const Index components_;
  const Index inputs_;
  const Matrix embedding_;  // a column for each worker
  const Matrix pool_1_;
  const Row pool_1_bias_;
  const Matrix pool_2_;
  const Row pool_2_bias_;
  const Matrix worker_1_;
  const Row worker_1_bias_;
  const Matrix worker_2_;
  const Row worker_2_bias_;
  // Scratch.
  RowMajor x_;
  Matrix pool_hidden_;
  Row pooled_;
  float pooled_count_ = 0.0F;
  Matrix hidden_;
  Matrix out_;
  Matrix loadings_;
  Matrix shifts_;
  const std::unique_ptr<Component[]> mixture_;
};

}  // namespace

std::unique_ptr<SharedEmission> make_shared_emission(const ModelWeights& weights) {
  return std::make_unique<SharedEmissionPass>(weights);
}

}  // namespace drover::DROVER_BUILD

#include "forecast/learned/state_space.h"

#include "core/check.h"
#include "forecast/learned/builds.h"
#include "forecast/learned/vector_math.h"

namespace drover::DROVER_BUILD {
namespace {

using Eigen::Index;

// Samples per block. Samples are independent; with small blocks, matrix products need only stack
// memory.
constexpr Index kChains = 128;
constexpr float kLeastScale = 0.001F;

using Chains = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;

// Weights and bias of a layer.
struct Layer {
  Layer(const Tensor& weight, const Tensor& offset) : w(transposed(weight)), b(bias(offset)) {}
  // Two that read the same become one.
  Layer(const Layer& left, const Layer& right)
      : w(left.w.rows(), left.w.cols() + right.w.cols()), b(w.cols()) {
    w << left.w, right.w;
    b << left.b, right.b;
  }
  template <typename Input, typename Output>
  void apply(const Input& x, Output&& y) const {
    y.noalias() = x * w;
    y.rowwise() += b;
  }

  Matrix w;
  Row b;
};

class StateSpacePass final : public StateSpace {
 public:
  explicit StateSpacePass(const ModelWeights& weights)
      : latent_(weights.shape.latent),
        rnn_(weights.shape.rnn),
        start_(bias(weights.tensor("start"))),
        gru_input_(transposed(weights.tensor("gru_input"))),
        gru_input_bias_(bias(weights.tensor("gru_input_bias")).transpose()),
        gru_hidden_(transposed(weights.tensor("gru_hidden")).transpose()),
        gru_hidden_bias_(bias(weights.tensor("gru_hidden_bias")).transpose()),
        combine_(weights.tensor("combine"), weights.tensor("combine_bias")),
        q_(Layer(weights.tensor("q_mean"), weights.tensor("q_mean_bias")),
           Layer(weights.tensor("q_scale"), weights.tensor("q_scale_bias"))),
        hidden_(Layer(weights.tensor("gate_1"), weights.tensor("gate_1_bias")),
                Layer(weights.tensor("prop_1"), weights.tensor("prop_1_bias"))),
        gate_(weights.tensor("gate_2"), weights.tensor("gate_2_bias")),
        prop_(weights.tensor("prop_2"), weights.tensor("prop_2_bias")),
        stay_(weights.tensor("stay"), weights.tensor("stay_bias")),
        drift_(weights.tensor("drift"), weights.tensor("drift_bias")),
        g_(rnn_, Index{weights.shape.window}),
        h_(rnn_),
        from_h_(3 * rnn_),
        z_(kChains, latent_),
        noise_(kChains, latent_),
        c_(kChains, rnn_),
        moments_(kChains, 2 * latent_),
        hiddens_(kChains, 2 * Index{weights.shape.transition}),
        gates_(kChains, latent_),
        props_(kChains, latent_),
        stays_(kChains, latent_),
        drifts_(kChains, latent_) {}

  void project(std::span<const float> v, std::span<float> projection) override {
    DROVER_CHECK(static_cast<Index>(v.size()) == gru_input_.rows());
    DROVER_CHECK(static_cast<Index>(projection.size()) == 3 * rnn_);
    Eigen::Map<Vector> out(projection.data(), 3 * rnn_);
    out.noalias() = gru_input_.transpose() * Eigen::Map<const Vector>(v.data(), gru_input_.rows());
    out += gru_input_bias_;
  }

  void amend(uint32_t i, float change, std::span<float> projection) const override {
    Eigen::Map<Vector>(projection.data(), 3 * rnn_) += change * gru_input_.row(i).transpose();
  }

  void sample(std::span<const float* const> window, std::span<const float> uniforms,
              uint32_t samples, std::span<float> z) override {
    const auto latent = static_cast<size_t>(latent_);
    DROVER_CHECK(static_cast<Index>(window.size()) <= g_.cols());
    DROVER_CHECK(uniforms.size() == (window.size() + 1) * latent * samples);
    DROVER_CHECK(z.size() == latent * samples);
    encode(window);
    for (uint32_t begin = 0; begin < samples; begin += kChains) {
      const Index count = samples - begin < kChains ? Index{samples - begin} : kChains;
      const auto random_numbers = [&](size_t step) {
        return Chains(uniforms.data() + step * latent * samples + begin, count, latent_,
                      Eigen::OuterStride<>(samples));
      };
      z_.topRows(count) = start_.replicate(count, 1);
      for (size_t step = 0; step < window.size(); ++step) {
        propose(random_numbers(step), static_cast<Index>(step), count);
      }
      move_on(random_numbers(window.size()), count);
      Eigen::Map<Matrix, 0, Eigen::OuterStride<>>(
          z.data() + begin, count, latent_, Eigen::OuterStride<>(samples)) = z_.topRows(count);
    }
  }

 private:
  // g_t of every step of the window, from the newest back.
  void encode(std::span<const float* const> window) {
    h_.setZero();
    for (size_t left = window.size(); left > 0; --left) {
      const Eigen::Map<const Vector> x(window[left - 1], 3 * rnn_);
      from_h_.noalias() = gru_hidden_ * h_;
      from_h_ += gru_hidden_bias_;
      const auto part = [&](const auto& v, Index i) { return v.segment(i * rnn_, rnn_).array(); };
      auto now = g_.col(static_cast<Index>(left - 1)).array();
      now = (part(x, 0) + part(from_h_, 0)).logistic();  // r
      now = (part(x, 2) + now * part(from_h_, 2)).tanh();
      from_h_.head(rnn_).array() = (part(x, 1) + part(from_h_, 1)).logistic();  // u
      now += part(from_h_, 0) * (h_.array() - now);
      h_ = now.matrix();
    }
  }

  void draw_noise(const Chains& uniforms, Index count) {
    auto noise = noise_.topRows(count);
    for (Index j = 0; j < latent_; ++j) {
      for (Index k = 0; k < count; ++k) noise(k, j) = before_log(inside(uniforms(k, j)));
    }
    noise = noise.array().log();
    for (Index j = 0; j < latent_; ++j) {
      for (Index k = 0; k < count; ++k) noise(k, j) = from_log(inside(uniforms(k, j)), noise(k, j));
    }
  }

  void propose(const Chains& uniforms, Index step, Index count) {
    draw_noise(uniforms, count);
    auto z = z_.topRows(count);
    auto c = c_.topRows(count);
    auto moments = moments_.topRows(count);
    combine_.apply(z, c);
    c = c.array().tanh();
    for (Index i = 0; i < rnn_; ++i) c.col(i).array() = 0.5F * (c.col(i).array() + g_(i, step));
    q_.apply(c, moments);
    z = moments.leftCols(latent_).array() +
        (softplus(moments.rightCols(latent_).array()) + kLeastScale) *
            noise_.topRows(count).array();
  }

  void move_on(const Chains& uniforms, Index count) {
    draw_noise(uniforms, count);
    const Index half = hiddens_.cols() / 2;
    auto z = z_.topRows(count);
    auto hidden = hiddens_.topRows(count);
    auto gate = gates_.topRows(count);
    auto prop = props_.topRows(count);
    auto stay = stays_.topRows(count);
    auto drift = drifts_.topRows(count);
    hidden_.apply(z, hidden);
    hidden = hidden.cwiseMax(0.0F);
    gate_.apply(hidden.leftCols(half), gate);
    gate = gate.array().logistic();
    prop_.apply(hidden.rightCols(half), prop);
    stay_.apply(z, stay);
    z = prop.cwiseMax(0.0F);
    drift_.apply(z, drift);
    z = stay.array() + gate.array() * (prop.array() - stay.array()) +
        (softplus(drift.array()) + kLeastScale) * noise_.topRows(count).array();
  }

  const Index latent_;
  const Index rnn_;
  const Row start_;
  const Matrix gru_input_;  // inputs x outputs: one input's weights side by side
  const Vector gru_input_bias_;
  const Matrix gru_hidden_;
  const Vector gru_hidden_bias_;
  const Layer combine_;
  const Layer q_;
  const Layer hidden_;
  const Layer gate_;
  const Layer prop_;
  const Layer stay_;
  const Layer drift_;
  // Scratch.
  Matrix g_;
  Vector h_;
  Vector from_h_;
  Matrix z_;
  Matrix noise_;
  Matrix c_;
  Matrix moments_;
  Matrix hiddens_;
  Matrix gates_;
  Matrix props_;
  Matrix stays_;
  Matrix drifts_;
};

}  // namespace

std::unique_ptr<StateSpace> make_state_space(const ModelWeights& weights) {
  return std::make_unique<StateSpacePass>(weights);
}

}  // namespace drover::DROVER_BUILD

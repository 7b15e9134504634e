#include "fit/torch/elbo.h"

#include <cmath>
#include <numbers>

#include "forecast/learned/worker_features.h"

namespace drover {
namespace {

const double kLogRoot2Pi = 0.5 * std::log(2.0 * std::numbers::pi);
// Beyond this, log_tail uses the asymptotic branch.
constexpr double kFarOut = 20.0;
// So far in the tail that likelihoods are meaningless, but squares are still finite.
constexpr double kFurthest = 1e6;

at::Tensor plane(const std::vector<float>& values, at::IntArrayRef sizes, at::ScalarType type) {
  // libtorch has no tensors of const floats. These are only read.
  return at::from_blob(const_cast<float*>(values.data()), sizes, at::kFloat).to(type);
}

// The observations of the groups begin..end-1.
struct Times {
  at::Tensor anchors, target, log_unit, took_part;
  at::Tensor cut_short;  // indices over groups and workers
};

Times times_of(const Windows& windows, int64_t begin, int64_t end) {
  const auto part = [&](const at::Tensor& tensor) { return tensor.narrow(0, begin, end - begin); };
  return {
      windows.anchors.defined() ? windows.anchors.narrow(1, begin, end - begin) : windows.anchors,
      part(windows.target), part(windows.log_unit), part(windows.took_part),
      part(windows.cut_short).flatten().nonzero().squeeze(1)};
}

// log density or log tail of each entry, for any `mean` and `log_scale` that broadcast with
// groups x workers.
at::Tensor entry_likelihood(const Times& times, const at::Tensor& mean, const at::Tensor& scale,
                            const at::Tensor& log_scale) {
  const at::Tensor distance = ((times.target - mean) / scale).clamp(-kFurthest, kFurthest);
  // distance^2 / -2 - log_scale - constants, the unit being that of the log time.
  const at::Tensor density =
      at::addcmul(-(log_scale + (times.log_unit + kLogRoot2Pi)), distance, distance, -0.5);
  if (times.cut_short.size(0) == 0) return density;
  // Tails are much more expensive than densities, and mostly few run-times are censored.
  const at::Tensor tails = log_tail(distance.flatten(-2).index_select(-1, times.cut_short));
  return density.flatten(-2).index_copy(-1, times.cut_short, tails).view(density.sizes());
}

// The log likelihood of each group: particles x groups. `z` is particles x groups x latent.
at::Tensor shared_likelihood(const ModelShape& shape, const Times& times,
                             const at::Tensor& described, const at::Tensor& z) {
  const int64_t components = shape.components;
  const int64_t each = outputs_per_component();
  const std::vector<at::Tensor> parts =
      described.split_with_sizes({components * each, int64_t{shape.latent}});
  const int64_t groups = described.size(1);
  const int64_t workers = described.size(2);
  // Component x place x groups x workers.
  const at::Tensor mixture = parts[0].view({components, each, groups, workers});
  const std::vector<at::Tensor> places =
      mixture.split_with_sizes({1, int64_t{kAnchorCount}, 1, 1}, 1);
  const at::Tensor log_weight = at::log_softmax(places[0], 0);
  const at::Tensor level =
      (at::softmax(places[1], 1) * times.anchors).sum(1, /*keepdim=*/true) + places[2];
  const at::Tensor log_scale = places[3].clamp(-5.0, 5.0);
  // loadings . z: latent x particles x groups x workers, summed over the first.
  const at::Tensor loadings = parts[1].unsqueeze(1);
  const at::Tensor shift = (loadings * z.permute({2, 0, 1}).unsqueeze(3)).sum(0);
  const at::Tensor entries =
      entry_likelihood(times, level + shift, log_scale.exp(), log_scale) + log_weight;
  return (at::logsumexp(entries, 0) * times.took_part).sum(2);
}

at::Tensor published_likelihood(const Network& network, const Times& times, const at::Tensor& z) {
  const Normal emitted = emit_all(network, z.reshape({-1, z.size(2)}));
  const std::vector<int64_t> sizes = {z.size(0), z.size(1), -1};
  const at::Tensor scale = emitted.scale.view(sizes);
  const at::Tensor entries = entry_likelihood(times, emitted.mean.view(sizes), scale, scale.log());
  return (entries * times.took_part).sum(2);
}

// KL(q || p), summed over the state.
at::Tensor divergence(const Normal& q, const Normal& p) {
  const at::Tensor ratio = q.scale / p.scale;
  const at::Tensor apart = (q.mean - p.mean) / p.scale;
  return 0.5 * (ratio.square() + apart.square() - 1.0 - 2.0 * ratio.log()).sum(-1);
}

}  // namespace

at::Tensor log_tail(const at::Tensor& x) {
  // In the far tail, P = density / (x + 1 / (x + ...)), a continued fraction; this depth is enough.
  const at::Tensor far = x.clamp_min(kFarOut);
  const at::Tensor far_tail =
      -0.5 * far * far - (far + 1.0 / (far + 2.0 / far)).log() - kLogRoot2Pi;
  return at::where(x > kFarOut, far_tail, at::special_log_ndtr(-x.clamp_max(kFarOut)));
}

Cells::Cells(const FitData& data, at::ScalarType type)
    : shape(data.shape), workers(static_cast<int64_t>(data.workers())) {
  const auto cells = static_cast<int64_t>(data.target.size());
  inputs = plane(data.inputs, {cells, int64_t{data.inputs_a_cell}}, type);
  if (shape.emission == Emission::kShared) {
    anchors = plane(data.anchors, {int64_t{kAnchorCount}, cells}, type);
  }
  target = plane(data.target, {cells}, type);
  log_unit = plane(data.log_unit, {cells}, type);
  took_part = plane(data.took_part, {cells}, type);
  cut_short = plane(data.cut_short, {cells}, at::kBool);
}

Windows::Windows(const Cells& cells, const at::Tensor& next, const at::Tensor& chosen,
                 int64_t counted_from)
    : window(cells.shape.window), count(next.size(0)), workers(chosen) {
  // Steps next - window .. next, the windows' first steps first.
  const at::Tensor steps =
      (at::arange(-window, 1, at::kLong).unsqueeze(1) + next.unsqueeze(0)).flatten();
  const at::Tensor index = (steps.unsqueeze(1) * cells.workers + workers.unsqueeze(0)).flatten();
  const std::vector<int64_t> sizes = {steps.size(0), workers.size(0)};
  const auto gather = [&](const at::Tensor& from) {
    return from.index_select(0, index).view(sizes);
  };
  inputs = cells.inputs.index_select(0, index).view({sizes[0], sizes[1], cells.inputs.size(1)});
  if (cells.anchors.defined()) {
    anchors = cells.anchors.index_select(1, index).view({-1, sizes[0], sizes[1]});
  }
  target = gather(cells.target);
  log_unit = gather(cells.log_unit);
  took_part = gather(cells.took_part);
  cut_short = gather(cells.cut_short);
  counts = (steps >= counted_from).to(target.scalar_type());
  scaled_up = static_cast<double>(cells.workers) / static_cast<double>(workers.size(0));
}

Elbo elbo_of(const Network& network, const Windows& windows, const Noise& noise,
             bool with_foresight) {
  const ModelShape& shape = network.shape;
  const bool shared = shape.emission == Emission::kShared;
  const int64_t latent = shape.latent;
  const int64_t inside = windows.window * windows.count;  // groups within windows
  const int64_t groups = with_foresight ? inside + windows.count : inside;
  const int64_t chains = noise.particles * windows.count;

  at::Tensor v = windows.inputs.narrow(0, 0, inside);
  at::Tensor described;
  if (shared) {
    const at::Tensor embedding = network.embedding.index_select(0, windows.workers);
    v = pool(network, v, embedding, windows.took_part.narrow(0, 0, inside));
    described = describe_workers(network, windows.inputs.narrow(0, 0, groups), embedding);
  }
  const at::Tensor g = encode(network, v.reshape({windows.window, windows.count, -1}));
  const Proposal proposal = propose(network, g.repeat({1, noise.particles, 1}), noise.q);

  // All transitions at once: into each step of the window and into the one after.
  const at::Tensor before =
      at::cat({network.start.expand({1, chains, latent}), proposal.z}).view({-1, latent});
  const Normal after = transition(network, before);
  const auto within = [&](const at::Tensor& tensor) {
    return tensor.narrow(0, 0, windows.window * chains).view({windows.window, chains, latent});
  };
  const at::Tensor apart = divergence(proposal.q, {within(after.mean), within(after.scale)})
                               .view({windows.window, noise.particles, windows.count})
                               .mean(1)
                               .view({inside});

  std::vector<at::Tensor> parts;  // within windows, after them
  if (shared) parts = described.split_with_sizes({inside, groups - inside}, 1);
  const auto likelihood = [&](size_t part, const at::Tensor& z) {
    const Times times =
        part == 0 ? times_of(windows, 0, inside) : times_of(windows, inside, groups);
    if (!shared) return published_likelihood(network, times, z);
    return shared_likelihood(shape, times, parts[part], z);
  };
  // The first particle's: windows x steps, as one particle's groups.
  const at::Tensor z = proposal.z.narrow(1, 0, windows.count).reshape({1, inside, latent});
  const at::Tensor counts = windows.counts.narrow(0, 0, inside);
  const at::Tensor present = windows.took_part.sum(1) * windows.counts;
  const at::Tensor entries = present.narrow(0, 0, inside).sum().clamp_min(1.0);
  Elbo elbo;
  elbo.likelihood = (likelihood(0, z).squeeze(0) * counts).sum() / entries;
  elbo.divergence = (apart * counts).sum() / (entries * windows.scaled_up);
  if (!with_foresight) return elbo;
  const at::Tensor next =
      at::addcmul(after.mean.narrow(0, windows.window * chains, chains),
                  after.scale.narrow(0, windows.window * chains, chains), noise.ahead)
          .view({noise.particles, windows.count, latent});
  const at::Tensor foreseen =
      at::logsumexp(likelihood(1, next), 0) - std::log(static_cast<double>(noise.particles));
  elbo.foresight = foreseen.sum() / present.narrow(0, inside, windows.count).sum().clamp_min(1.0);
  return elbo;
}

}  // namespace drover

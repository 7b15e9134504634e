// What a fit maximises: the evidence lower bound of windows of steps, and how well the step after
// each was foreseen.
//
//   sum over t of E_q[ log p(x_t | z_t) ] - beta KL(q(z_t | z_t-1, x) || p(z_t | z_t-1))
//
// with one draw of z and the KL of diagonal Gaussians in closed form. Of who arrived, log p is the
// density of his log time, of who was cut short the log of the probability of taking longer.
//
// Foresight is log p(x_T+1 | x_T-window+1 .. x_T), as the mean over draws of z_T+1 from the
// transition of the probability of the whole step: what a forecast is used for. It looks at the
// step after the window alone, since within the window q has read what it would have to foresee.
#pragma once

#include <ATen/ATen.h>

#include "fit/fit_data.h"
#include "fit/torch/networks.h"

namespace drover {

// FitData as tensors of one type. Refers to the data's memory if that is the type it has.
struct Cells {
  Cells(const FitData& data, at::ScalarType type);

  ModelShape shape;
  int64_t workers;
  at::Tensor inputs;                                  // cells x inputs
  at::Tensor anchors;                                 // anchors x cells; kShared
  at::Tensor target, log_unit, took_part, cut_short;  // cells
};

// Windows of steps, each with the step after it; a group is a step of a window, all first steps
// before all second ones.
struct Windows {
  // `next` are the steps to be foreseen, `workers` those to look at (of kShared; others need all).
  // Steps before `counted_from` are read, but do not count.
  Windows(const Cells& cells, const at::Tensor& next, const at::Tensor& workers,
          int64_t counted_from = 0);

  int64_t window;
  int64_t count;
  at::Tensor workers;
  at::Tensor inputs;                                  // groups x workers x inputs
  at::Tensor anchors;                                 // anchors x groups x workers
  at::Tensor target, log_unit, took_part, cut_short;  // groups x workers
  at::Tensor counts;  // groups: 1, or 0 for a step that does not count
  double scaled_up;   // all workers for each that is looked at
};

// Standard normal draws for a number of windows and particles, each of which is a chain of states.
struct Noise {
  at::Tensor q;      // window x (particles * windows) x latent
  at::Tensor ahead;  // (particles * windows) x latent
  int64_t particles;
};

// All per run-time that counted.
struct Elbo {
  at::Tensor likelihood;
  at::Tensor divergence;
  at::Tensor foresight;  // not defined if it was not asked for

  at::Tensor bound(double beta) const { return likelihood - beta * divergence; }
};
Elbo elbo_of(const Network& network, const Windows& windows, const Noise& noise,
             bool with_foresight);

// log P(a standard normal > x), exact to the last few bits however far out.
at::Tensor log_tail(const at::Tensor& x);

}  // namespace drover

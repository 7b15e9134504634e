// The objective of a fit: the evidence lower bound (ELBO) of windows of steps, and the likelihood
// of the step after each window.
//
//   sum over t of E_q[ log p(x_t | z_t) ] - beta KL(q(z_t | z_t-1, x) || p(z_t | z_t-1))
//
// with one draw of z and the KL of diagonal Gaussians in closed form. log p is the log density of
// the log run-time for an arrival, and the log of the tail probability for a censored run-time.
//
// Foresight is log p(x_T+1 | x_T-window+1 .. x_T): the log of the mean, over draws of z_T+1 from
// the transition, of the likelihood of the whole step. This is what forecasts need. It uses only
// the step after the window, because q has already read the steps within the window.
#pragma once

#include <ATen/ATen.h>

#include "fit/fit_data.h"
#include "fit/torch/networks.h"

namespace drover {

// FitData as tensors of one type. Shares the memory of the data if the type is equal.
struct Cells {
  Cells(const FitData& data, at::ScalarType type);

  ModelShape shape;
  int64_t workers;
  at::Tensor inputs;                                  // cells x inputs
  at::Tensor anchors;                                 // anchors x cells; kShared
  at::Tensor target, log_unit, took_part, cut_short;  // cells
};

// Windows of steps, each with the step after it. A group is a step of a window; the first steps of
// all windows come before their second steps.
struct Windows {
  // `next` are the steps after the windows. `workers` are the ones to use (kShared; others need
  // all). Steps before `counted_from` are inputs only; their likelihood does not count.
  Windows(const Cells& cells, const at::Tensor& next, const at::Tensor& workers,
          int64_t counted_from = 0);

  int64_t window;
  int64_t count;
  at::Tensor workers;
  at::Tensor inputs;                                  // groups x workers x inputs
  at::Tensor anchors;                                 // anchors x groups x workers
  at::Tensor target, log_unit, took_part, cut_short;  // groups x workers
  at::Tensor counts;  // groups: 1, or 0 for a step that does not count
  double scaled_up;   // number of all workers per used one
};

// Standard normal draws for a number of windows and particles, each of which is a chain of states.
struct Noise {
  at::Tensor q;      // window x (particles * windows) x latent
  at::Tensor ahead;  // (particles * windows) x latent
  int64_t particles;
};

// All values are per counted run-time.
struct Elbo {
  at::Tensor likelihood;
  at::Tensor divergence;
  at::Tensor foresight;  // undefined unless requested

  at::Tensor bound(double beta) const { return likelihood - beta * divergence; }
};
Elbo elbo_of(const Network& network, const Windows& windows, const Noise& noise,
             bool with_foresight);

// log P(a standard normal > x), accurate to the last few bits, also in the far tail.
at::Tensor log_tail(const at::Tensor& x);

}  // namespace drover

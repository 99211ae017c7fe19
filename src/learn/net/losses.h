// The losses that training minimizes, in libtorch. Internal to learn/net.
#pragma once

#include <string>
#include <vector>

#include "learn/net/net.h"

namespace tensorsmith::learn::net {

struct LossOptions {
  // The loss to minimize:
  //   on the label z (LabelTransform): "mse", "rmse", "hybrid" (CDMPP);
  //   on log(seconds): "mape" (smoothed percentage error);
  //   on the order within a task and device only: "lambdarank".
  std::string loss = "rmse";
  double rank_weight = 0;  // factor on lambda_rank, which is added to the loss

  bool ranks() const { return loss == "lambdarank" || rank_weight > 0; }
  bool ranks_only() const { return loss == "lambdarank"; }
};

// The labels of a batch's programs.
struct Targets {
  Tensor z;                   // [measured]
  Tensor r;                   // [measured]: log(seconds) - base
  Tensor measured;            // [measured] int64: indices of the programs that did not fail
  Tensor trust;               // [measured]: Batch::trust, the weight in losses on labels; undefined: all 1
  Tensor score;               // [programs]: Batch::score
  std::vector<int64_t> task;  // by program

  static Targets create(const Batch& batch, const LabelTransform& transform, torch::Device device);
};

// LabelTransform::decode for tensors.
Tensor decode(const Tensor& z, const LabelTransform& transform);

// Returns a scalar. Failed programs affect only ranking losses, where trust has no effect.
Tensor total_loss(const NetOutput& output, const Targets& targets, const LabelTransform& transform,
                  const LossOptions& options);

// --- the parts

// 1000 * mean (z - y)^2 + mean |z - y| / |y| (CDMPP, section 5.3). y is standardized, so some
// labels are close to 0; |y| is replaced by at least kLeastLabel, so that they do not dominate the
// batch. The means have the weights, if there are any.
Tensor hybrid_loss(const Tensor& z, const Tensor& y, const Tensor& weight = {});
inline constexpr double kLeastLabel = 0.1;

// Mean of sqrt(e^2 + kSmooth^2) - kSmooth, where e = exp(d) - 1 is the relative error for d =
// predicted - true log(seconds). For |d| > 1, exp is continued as a straight line; otherwise the
// loss would explode for far too large predictions, and have no gradient for far too small ones.
Tensor relative_loss(const Tensor& predicted, const Tensor& truth, const Tensor& weight = {});
inline constexpr double kSmooth = 0.05;

// LambdaRank as in TenSet: -sum over y_i > y_j of w_ij log2 sigmoid(p_i - p_j), w_ij = |1/D_i -
// 1/D_j| |G_i - G_j|, D = log2(1 + predicted rank), G = (2^y - 1) / the largest DCG. Returns the
// mean over the lists, which are the runs of equal numbers in `task`; so programs of different
// tasks or devices are never compared. p: scores, larger is better. Returns 0 if no list has two
// programs.
Tensor lambda_rank(const Tensor& p, const Tensor& y, const std::vector<int64_t>& task);

// Central moment discrepancy of two samples [n, width], [m, width] with values in [0, 1]: the
// distance of the means plus the distances of the central moments 2 to `moments` (Zellinger et al.,
// ICLR 2017, definition 2).
Tensor central_moment_discrepancy(const Tensor& x, const Tensor& y, int moments = 5);

}  // namespace tensorsmith::learn::net

// What training minimizes, in libtorch. Internal to learn/net.
#pragma once

#include <string>
#include <vector>

#include "learn/net/net.h"

namespace tensorsmith::learn::net {

struct LossOptions {
  // Of the label z (LabelTransform): "mse", "rmse", "hybrid" (CDMPP).
  // Of log(seconds): "mape" (percentage error, smooth).
  // "lambdarank": the order within a task and device only.
  std::string loss = "rmse";
  double rank_weight = 0;  // times lambda_rank, added to the loss

  bool ranks() const { return loss == "lambdarank" || rank_weight > 0; }
  bool ranks_only() const { return loss == "lambdarank"; }
};

// What a batch's programs are compared with.
struct Targets {
  Tensor z;                   // [measured]
  Tensor r;                   // [measured]: log(seconds) - base
  Tensor measured;            // [measured] int64: the programs that did not fail
  Tensor score;               // [programs]: Batch::score
  std::vector<int64_t> task;  // by program

  static Targets create(const Batch& batch, const LabelTransform& transform, torch::Device device);
};

// LabelTransform::decode for tensors.
Tensor decode(const Tensor& z, const LabelTransform& transform);

// A scalar. Failed programs only count for the order.
Tensor total_loss(const NetOutput& output, const Targets& targets, const LabelTransform& transform,
                  const LossOptions& options);

// --- the parts

// 1000 * mean (z - y)^2 + mean |z - y| / |y| (CDMPP, section 5.3). y is standardized, so some labels are next
// to 0; |y| counts as at least kLeastLabel, or they would outweigh the batch.
Tensor hybrid_loss(const Tensor& z, const Tensor& y);
inline constexpr double kLeastLabel = 0.1;

// Mean of sqrt(e^2 + kSmooth^2) - kSmooth, e = exp(d) - 1 the relative error of d = predicted - true
// log(seconds), continued as a straight line beyond |d| = 1: else a far too large prediction explodes, and a
// far too small one has no gradient.
Tensor relative_loss(const Tensor& predicted, const Tensor& truth);
inline constexpr double kSmooth = 0.05;

// LambdaRank as TenSet has it: -sum over y_i > y_j of w_ij log2 sigmoid(p_i - p_j),
// w_ij = |1/D_i - 1/D_j| |G_i - G_j|, D = log2(1 + predicted rank), G = (2^y - 1) / the largest DCG. The mean
// over the lists, which are the runs of equal numbers in `task`: programs of different tasks or devices are
// never compared. scores p: larger is better; 0 where no list has two programs.
Tensor lambda_rank(const Tensor& p, const Tensor& y, const std::vector<int64_t>& task);

// Central moment discrepancy of two samples [n, width], [m, width] with values in [0, 1]: the distance of the
// means, plus those of the central moments 2 to `moments` (Zellinger et al., ICLR 2017, definition 2).
Tensor central_moment_discrepancy(const Tensor& x, const Tensor& y, int moments = 5);

}  // namespace tensorsmith::learn::net

#include "learn/net/losses.h"

#include <torch/nn/functional.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace tensorsmith::learn::net {

namespace {

// Returns the mean of the values, each with its weight; an undefined weight counts all equally.
Tensor weighted_mean(const Tensor& values, const Tensor& weight) {
  return weight.defined() ? (values * weight).sum() / weight.sum() : values.mean();
}

}  // namespace

Targets Targets::create(const Batch& batch, const LabelTransform& transform, torch::Device device) {
  Targets out;
  std::vector<float> z, r, trust;
  std::vector<int64_t> measured;
  for (size_t p = 0; p < batch.log_seconds.size(); ++p) {
    if (!std::isfinite(batch.log_seconds[p])) continue;
    const double label = batch.log_seconds[p] - batch.base[p];
    r.push_back(static_cast<float>(label));
    z.push_back(static_cast<float>(transform.encode(label)));
    trust.push_back(batch.trust[p]);
    measured.push_back(p);
  }
  out.z = torch::tensor(z, torch::kFloat32).to(device);
  out.r = torch::tensor(r, torch::kFloat32).to(device);
  out.measured = torch::tensor(measured, torch::kInt64).to(device);
  if (std::any_of(trust.begin(), trust.end(), [](float t) { return t < 1; }))
    out.trust = torch::tensor(trust, torch::kFloat32).to(device);
  out.score = torch::tensor(batch.score, torch::kFloat32).to(device);
  out.task = batch.task;
  return out;
}

Tensor decode(const Tensor& z, const LabelTransform& t) {
  const Tensor value = z * t.deviation + t.mean;
  if (std::abs(t.lambda) < 1e-9) return value + t.center;
  return (value * t.lambda + 1).clamp_min(kLeastPower).log() / t.lambda + t.center;
}

Tensor hybrid_loss(const Tensor& z, const Tensor& y, const Tensor& weight) {
  return 1000 * weighted_mean((z - y).square(), weight) +
         weighted_mean((z - y).abs() / y.abs().clamp_min(kLeastLabel), weight);
}

Tensor relative_loss(const Tensor& predicted, const Tensor& truth, const Tensor& weight) {
  const Tensor d = predicted - truth;
  const Tensor near = d.clamp(-1, 1);
  // Beyond 1 and -1, exp continues with its slope there.
  const Tensor far = (d - 1).clamp_min(0) * std::numbers::e + (d + 1).clamp_max(0) / std::numbers::e;
  const Tensor e = torch::expm1(near) + far;
  return weighted_mean((e.square() + kSmooth * kSmooth).sqrt() - kSmooth, weight);
}

Tensor lambda_rank(const Tensor& p, const Tensor& y, const std::vector<int64_t>& task) {
  std::vector<int64_t> begin = {0};
  for (size_t i = 1; i <= task.size(); ++i) {
    if (i == task.size() || task[i] != task[i - 1]) begin.push_back(i);
  }
  const Ragged lists = Ragged::create(begin, p.device());
  if (lists.longest < 2) return p.sum() * 0;
  const Tensor scores = pad(p.unsqueeze(1), lists).squeeze(2);  // [lists, longest]
  const Tensor labels = pad(y.unsqueeze(1), lists).squeeze(2);
  const Tensor empty = lists.mask.logical_not();
  constexpr double kLast = -std::numeric_limits<double>::infinity();
  const Tensor places = torch::arange(1, lists.longest + 1, p.options());
  const Tensor discount = (places + 1).log2();
  const Tensor gain = (torch::exp2(labels) - 1).masked_fill(empty, 0);
  const Tensor best = std::get<0>(gain.sort(1, /*descending=*/true));
  const Tensor g = gain / (best / discount).sum(1, /*keepdim=*/true).clamp_min(1e-12);
  const Tensor rank = scores.detach()
                          .masked_fill(empty, kLast)
                          .argsort(1, /*descending=*/true)
                          .argsort(1, /*descending=*/false);
  const Tensor d = 1 / discount.index_select(0, rank.flatten()).view_as(scores);
  const auto pairs = [](const Tensor& x) { return x.unsqueeze(2) - x.unsqueeze(1); };  // x_i - x_j
  const Tensor both = lists.mask.unsqueeze(2).logical_and(lists.mask.unsqueeze(1));
  const Tensor counts = (pairs(labels) > 0).logical_and(both);
  const Tensor weight = (pairs(d).abs() * pairs(g).abs()).masked_fill(counts.logical_not(), 0);
  const Tensor likelihood = torch::nn::functional::logsigmoid(pairs(scores)) / std::numbers::ln2;
  return -(weight * likelihood).sum() / static_cast<double>(lists.programs);
}

Tensor central_moment_discrepancy(const Tensor& x, const Tensor& y, int moments) {
  // The small term avoids the infinite gradient of sqrt at 0, where the samples agree.
  const auto distance = [](const Tensor& a, const Tensor& b) {
    return ((a - b).square().sum() + 1e-12).sqrt();
  };
  const Tensor mean_x = x.mean(0), mean_y = y.mean(0);
  const Tensor centered_x = x - mean_x, centered_y = y - mean_y;
  Tensor sum = distance(mean_x, mean_y);
  for (int k = 2; k <= moments; ++k)
    sum = sum + distance(centered_x.pow(k).mean(0), centered_y.pow(k).mean(0));
  return sum;
}

Tensor total_loss(const NetOutput& output, const Targets& targets, const LabelTransform& transform,
                  const LossOptions& options) {
  Tensor loss = torch::zeros({}, output.value.options());
  if (!options.ranks_only() && targets.z.size(0) > 0) {
    const Tensor z = output.value.index_select(0, targets.measured);
    if (options.loss == "mse") {
      loss = weighted_mean((z - targets.z).square(), targets.trust);
    } else if (options.loss == "rmse") {
      loss = (weighted_mean((z - targets.z).square(), targets.trust) + 1e-12).sqrt();
    } else if (options.loss == "hybrid") {
      loss = hybrid_loss(z, targets.z, targets.trust);
    } else if (options.loss == "mape") {
      loss = relative_loss(decode(z, transform), targets.r, targets.trust);
    } else {
      TS_CHECK(false, "unknown loss " + options.loss);
    }
  }
  if (options.ranks()) {
    const double weight = options.ranks_only() ? 1 : options.rank_weight;
    loss = loss + weight * lambda_rank(-output.value, targets.score, targets.task);
  }
  return loss;
}

}  // namespace tensorsmith::learn::net

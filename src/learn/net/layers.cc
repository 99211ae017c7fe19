#include "learn/net/layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/result.h"

namespace tensorsmith::learn::net {

namespace {

// Selects rows by number; the number one past the last selects zeros. Each row is selected once, so
// the gradient is the same operation with the inverse numbers, without additions in a varying
// order.
class TakeRows : public torch::autograd::Function<TakeRows> {
 public:
  static Tensor take(const Tensor& x, const Tensor& numbers) {
    return torch::cat({x, torch::zeros({1, x.size(1)}, x.options())}).index_select(0, numbers);
  }
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& numbers,
                        const Tensor& inverse) {
    context->save_for_backward({inverse});
    return take(x, numbers);
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& gradients) {
    return {take(gradients[0].contiguous(), context->get_saved_variables()[0]), Tensor(), Tensor()};
  }
};

}  // namespace

Ragged Ragged::create(std::span<const int64_t> begin, torch::Device device) {
  Ragged out;
  out.programs = std::ssize(begin) - 1;
  out.rows = begin.back();
  for (size_t p = 1; p < begin.size(); ++p) out.longest = std::max(out.longest, begin[p] - begin[p - 1]);
  const auto numbers = torch::TensorOptions().dtype(torch::kInt64);
  out.slots = torch::full({out.programs * out.longest}, out.rows, numbers);
  out.places = torch::empty({out.rows}, numbers);
  out.owner = torch::empty({out.rows}, numbers);
  auto* slots = out.slots.data_ptr<int64_t>();
  auto* places = out.places.data_ptr<int64_t>();
  auto* owner = out.owner.data_ptr<int64_t>();
  for (int64_t p = 0; p < out.programs; ++p) {
    const size_t at = p;
    for (int64_t r = begin[at]; r < begin[at + 1]; ++r) {
      places[r] = p * out.longest + r - begin[at];
      slots[places[r]] = r;
      owner[r] = p;
    }
  }
  out.mask = (out.slots < out.rows).view({out.programs, out.longest}).to(device);
  out.slots = out.slots.to(device);
  out.places = out.places.to(device);
  out.owner = out.owner.to(device);
  return out;
}

Tensor pad(const Tensor& rows, const Ragged& ragged) {
  return TakeRows::apply(rows, ragged.slots, ragged.places)
      .view({ragged.programs, ragged.longest, rows.size(1)});
}

Tensor unpad(const Tensor& padded, const Ragged& ragged) {
  return TakeRows::apply(padded.reshape({ragged.programs * ragged.longest, padded.size(2)}), ragged.places,
                         ragged.slots);
}

Tensor sum_by_program(const Tensor& rows, const Ragged& ragged) { return pad(rows, ragged).sum(1); }

ScalerImpl::ScalerImpl(int64_t width) {
  shift_ = register_buffer("shift", torch::zeros({width}));
  scale_ = register_buffer("scale", torch::ones({width}));
}

void ScalerImpl::set(const ColumnScaling& scaling) {
  TS_CHECK(std::ssize(scaling.shift) == shift_.size(0), "the scaling has another width than the layer");
  for (const auto& [to, from] : {std::pair(&shift_, &scaling.shift), std::pair(&scale_, &scaling.scale)})
    to->copy_(torch::from_blob(const_cast<float*>(from->data()), {to->size(0)}, torch::kFloat32));
}

Tensor ScalerImpl::forward(const Tensor& x) {
  return ((x - shift_) * scale_).clamp_(-kMostDeviations, kMostDeviations);
}

torch::nn::Sequential make_mlp(const std::vector<int64_t>& widths, bool last_relu) {
  torch::nn::Sequential out;
  for (size_t i = 1; i < widths.size(); ++i) {
    out->push_back(torch::nn::Linear(widths[i - 1], widths[i]));
    if (last_relu || i + 1 < widths.size()) out->push_back(torch::nn::ReLU());
  }
  return out;
}

AttentionImpl::AttentionImpl(int64_t width, int64_t heads) : heads_(heads) {
  TS_CHECK(width % heads == 0, "attention width is not a multiple of the heads");
  qkv_ = register_module("qkv", torch::nn::Linear(width, 3 * width));
  out_ = register_module("out", torch::nn::Linear(width, width));
}

Tensor AttentionImpl::forward(const Tensor& rows, const Ragged& ragged) {
  const int64_t width = rows.size(1);
  // [3, programs, heads, longest, width / heads]
  const Tensor qkv = pad(qkv_(rows), ragged)
                         .view({ragged.programs, ragged.longest, 3, heads_, width / heads_})
                         .permute({2, 0, 3, 1, 4});
  const double scale = 1 / std::sqrt(width / heads_);
  const Tensor scores = torch::matmul(qkv[0] * scale, qkv[1].transpose(2, 3));
  // Only keys are masked; what an empty slot computes as a query is dropped by unpad().
  const Tensor empty = ragged.mask.logical_not().view({ragged.programs, 1, 1, ragged.longest});
  const Tensor weights = scores.masked_fill(empty, -std::numeric_limits<float>::infinity()).softmax(-1);
  const Tensor mixed = torch::matmul(weights, qkv[2]).permute({0, 2, 1, 3});
  return out_(unpad(mixed.reshape({ragged.programs, ragged.longest, width}), ragged));
}

EncoderLayerImpl::EncoderLayerImpl(int64_t width, int64_t heads, int64_t hidden) {
  attention_ = register_module("attention", Attention(width, heads));
  up_ = register_module("up", torch::nn::Linear(width, hidden));
  down_ = register_module("down", torch::nn::Linear(hidden, width));
  norm1_ = register_module("norm1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
  norm2_ = register_module("norm2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
}

Tensor EncoderLayerImpl::forward(const Tensor& rows, const Ragged& ragged) {
  const Tensor x = norm1_(rows + attention_(rows, ragged));
  return norm2_(x + down_(torch::relu(up_(x))));
}

AttentionPoolImpl::AttentionPoolImpl(int64_t width, int64_t heads) : heads_(heads) {
  TS_CHECK(width % heads == 0, "pooled width is not a multiple of the heads");
  score_ = register_module("score", torch::nn::Linear(width, heads));
}

Tensor AttentionPoolImpl::forward(const Tensor& rows, const Ragged& ragged) {
  const Tensor empty = ragged.mask.logical_not().unsqueeze(2);
  const Tensor weights = pad(score_(rows), ragged)
                             .masked_fill(empty, -std::numeric_limits<float>::infinity())
                             .softmax(1);  // [programs, longest, heads]
  const Tensor values = pad(rows, ragged).view({ragged.programs, ragged.longest, heads_, -1});
  return (values * weights.unsqueeze(3)).sum(1).flatten(1);
}

Tensor position_encoding(const Tensor& positions, int64_t width) {
  const int64_t half = (width + 1) / 2;
  const Tensor rate = torch::exp(torch::arange(half, torch::TensorOptions().dtype(torch::kFloat32)) *
                                 (-2 * std::log(10000.0) / width))
                          .to(positions.device());
  const Tensor angle = positions.to(torch::kFloat32).unsqueeze(1) * rate.unsqueeze(0);
  // sin, cos, sin, cos, ...
  return torch::stack({angle.sin(), angle.cos()}, 2).flatten(1).narrow(1, 0, width);
}

void initialize(torch::nn::Module& module, uint64_t seed) {
  const torch::NoGradGuard no_gradients;
  at::Generator generator = at::detail::createCPUGenerator(seed);
  for (const auto& item : module.named_modules()) {
    auto* linear = item.value()->as<torch::nn::Linear>();
    if (linear == nullptr) continue;
    const double bound = 1 / std::sqrt(linear->weight.size(1));
    linear->weight.uniform_(-bound, bound, generator);
    if (linear->bias.defined()) linear->bias.uniform_(-bound, bound, generator);
  }
}

}  // namespace tensorsmith::learn::net

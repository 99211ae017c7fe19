// Building blocks of the neural networks, in libtorch. Internal to learn/net.
//
// Programs have any number of rows (leaves, steps). Layers that process each row by itself get the
// rows of all programs without padding, [rows, width]. Only layers that mix the rows of a program
// get [programs, longest, width].
#pragma once

#include <torch/nn.h>
#include <torch/types.h>

#include <span>

#include "learn/net/statistics.h"

namespace tensorsmith::learn::net {

using torch::Tensor;

// Assigns rows to programs.
struct Ragged {
  int64_t programs = 0, rows = 0, longest = 0;
  Tensor slots;   // [programs * longest] int64: row number of each padded slot, `rows` if it is empty
  Tensor places;  // [rows] int64: the padded slot of each row
  Tensor mask;    // [programs, longest] bool: whether the slot has a row
  Tensor owner;   // [rows] int64: the program of each row

  // begin: programs + 1 numbers, ascending from 0.
  static Ragged create(std::span<const int64_t> begin, torch::Device device);
};

// [rows, width] -> [programs, longest, width], with zeros in empty slots.
Tensor pad(const Tensor& rows, const Ragged& ragged);
// The inverse of pad().
Tensor unpad(const Tensor& padded, const Ragged& ragged);
// [rows, width] -> [programs, width]
Tensor sum_by_program(const Tensor& rows, const Ragged& ragged);

// (x - shift) * scale by column, clamped to +-kMostDeviations. Stored with the weights, but not
// trained.
class ScalerImpl : public torch::nn::Module {
 public:
  explicit ScalerImpl(int64_t width);
  void set(const ColumnScaling& scaling);
  Tensor forward(const Tensor& x);

 private:
  Tensor shift_, scale_;
};
TORCH_MODULE(Scaler);
inline constexpr double kMostDeviations = 10;

// Makes linear layers with ReLU between them and, if `last_relu`, after the last. widths: of the
// input and of each layer's output.
torch::nn::Sequential make_mlp(const std::vector<int64_t>& widths, bool last_relu);

// Self-attention among the rows of each program (Vaswani et al., Attention is all you need, section
// 3.2), with empty slots masked out.
class AttentionImpl : public torch::nn::Module {
 public:
  AttentionImpl(int64_t width, int64_t heads);  // width must be a multiple of heads
  Tensor forward(const Tensor& rows, const Ragged& ragged);

 private:
  int64_t heads_;
  torch::nn::Linear qkv_{nullptr}, out_{nullptr};
};
TORCH_MODULE(Attention);

// Attention and a feed-forward layer, each added to its input and then normalized ("post-norm", as
// in CDMPP).
class EncoderLayerImpl : public torch::nn::Module {
 public:
  EncoderLayerImpl(int64_t width, int64_t heads, int64_t hidden);
  Tensor forward(const Tensor& rows, const Ragged& ragged);

 private:
  Attention attention_{nullptr};
  torch::nn::Linear up_{nullptr}, down_{nullptr};
  torch::nn::LayerNorm norm1_{nullptr}, norm2_{nullptr};
};
TORCH_MODULE(EncoderLayer);

// Weighted mean of each program's rows. The weights are a softmax of learned scores, separate for
// each group of width / heads columns.
class AttentionPoolImpl : public torch::nn::Module {
 public:
  AttentionPoolImpl(int64_t width, int64_t heads);
  Tensor forward(const Tensor& rows, const Ragged& ragged);  // [programs, width]

 private:
  int64_t heads_;
  torch::nn::Linear score_{nullptr};
};
TORCH_MODULE(AttentionPool);

// Sinusoidal encoding of positions (Vaswani et al., section 3.5): [n] int64 -> [n, width].
Tensor position_encoding(const Tensor& positions, int64_t width);

// Initializes weights and biases of every linear layer uniformly within 1 / sqrt(inputs); depends
// only on the seed.
void initialize(torch::nn::Module& module, uint64_t seed);

}  // namespace tensorsmith::learn::net

// Cases of the comparison with the peers: matrix products and the convolutions of three networks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tensorsmith::peers {

// Element type of operands and results. Sums are f32.
enum class Element { kF32, kBF16 };

// C[b, i, j] = sum_k A[b, i, k] * B[b, k, j], all row-major. A constant B may be packed beforehand.
struct GemmCase {
  int64_t batch, m, n, k;
  bool constant_b;
  Element element = Element::kF32;

  int64_t a_elements() const { return batch * m * k; }
  int64_t b_elements() const { return batch * k * n; }
  int64_t c_elements() const { return batch * m * n; }
  double flops() const { return 2.0 * static_cast<double>(batch * m * n * k); }
  std::string name() const;
};

// Operations after a convolution and its bias.
enum class Epilogue { kNone, kRelu, kRelu6, kAdd, kAddRelu };

// NCHW, batch 1, square images and windows, the same padding on all sides. Weights are [co, ci / groups,
// window, window]; a residual has the output's shape.
struct ConvCase {
  std::string network;
  int count;  // occurrences in the network
  int64_t ci, co, image, window, stride, pad, groups;
  Epilogue epilogue;
  Element element = Element::kF32;

  bool has_residual() const { return epilogue == Epilogue::kAdd || epilogue == Epilogue::kAddRelu; }
  int64_t out_image() const { return (image + 2 * pad - window) / stride + 1; }
  int64_t input_elements() const { return ci * image * image; }
  int64_t weight_elements() const { return co * (ci / groups) * window * window; }
  int64_t output_elements() const { return co * out_image() * out_image(); }
  double flops() const {
    return 2.0 * static_cast<double>(output_elements() * (ci / groups) * window * window);
  }
  std::string name() const;
};

// Returns square products, with B given at run time and with B constant; the dense layers of BERT base
// for 128 and 384 tokens (constant weights) and its attention products for 128 tokens. Some also in bf16.
std::vector<GemmCase> gemm_cases();

// Returns every distinct convolution of ResNet-50 (v1.5: the 3x3 convolutions have the stride),
// MobileNetV2 and SqueezeNet 1.1 for 224 x 224 images, and some of ResNet-50 in bf16, as network "bf16".
std::vector<ConvCase> conv_cases();

}  // namespace tensorsmith::peers

// GoogLeNet and Inception v3.
#include "graph/zoo/networks.h"

namespace tensorsmith::graph::zoo {
namespace {

constexpr double kEpsilon = 1e-3;

Tensor unit(NetworkBuilder& b, const Tensor& x, int64_t channels, const Window& window) {
  return b.conv_norm(x, channels, window, Activation::kRelu, 1, kEpsilon);
}
// An n x 1 convolution (1 x n in row()) that keeps the image size.
Tensor column(NetworkBuilder& b, const Tensor& x, int64_t channels, int64_t n) {
  return unit(b, x, channels, {{n, 1}, {1, 1}, {n / 2, 0}});
}
Tensor row(NetworkBuilder& b, const Tensor& x, int64_t channels, int64_t n) {
  return unit(b, x, channels, {{1, n}, {1, 1}, {0, n / 2}});
}

// Channels of the branches: 1 x 1; 1 x 1 then 3 x 3; again; pooling then 1 x 1. The third branch
// has a 3 x 3 kernel where the paper has 5 x 5, as in the trained weights that are in use.
struct Mix {
  int64_t direct, reduce3, out3, reduce5, out5, pooled;
};

Tensor googlenet_mix(NetworkBuilder& b, const Tensor& x, const Mix& m) {
  return b.concat(
      {unit(b, x, m.direct, square(1)), unit(b, unit(b, x, m.reduce3, square(1)), m.out3, square(3, 1, 1)),
       unit(b, unit(b, x, m.reduce5, square(1)), m.out5, square(3, 1, 1)),
       unit(b, b.max_pool(x, square(3, 1, 1), true), m.pooled, square(1))},
      1);
}

Tensor averaged(NetworkBuilder& b, const Tensor& x, int64_t channels) {
  return unit(b, b.average_pool(x, square(3, 1, 1)), channels, square(1));
}

// 35 x 35 blocks of the paper's figure 5, at size 299.
Tensor mix_a(NetworkBuilder& b, const Tensor& x, int64_t pooled) {
  const Tensor direct = unit(b, x, 64, square(1));
  const Tensor five = unit(b, unit(b, x, 48, square(1)), 64, square(5, 1, 2));
  Tensor twice = unit(b, unit(b, x, 64, square(1)), 96, square(3, 1, 1));
  twice = unit(b, twice, 96, square(3, 1, 1));
  return b.concat({direct, five, twice, averaged(b, x, pooled)}, 1);
}

Tensor reduce_a(NetworkBuilder& b, const Tensor& x) {
  const Tensor three = unit(b, x, 384, square(3, 2));
  Tensor twice = unit(b, unit(b, x, 64, square(1)), 96, square(3, 1, 1));
  twice = unit(b, twice, 96, square(3, 2));
  return b.concat({three, twice, b.max_pool(x, square(3, 2))}, 1);
}

// 17 x 17 blocks, figure 6: 7 x 7 as columns and rows.
Tensor mix_b(NetworkBuilder& b, const Tensor& x, int64_t inner) {
  const Tensor direct = unit(b, x, 192, square(1));
  const Tensor once = column(b, row(b, unit(b, x, inner, square(1)), inner, 7), 192, 7);
  Tensor twice = row(b, column(b, unit(b, x, inner, square(1)), inner, 7), inner, 7);
  twice = row(b, column(b, twice, inner, 7), 192, 7);
  return b.concat({direct, once, twice, averaged(b, x, 192)}, 1);
}

Tensor reduce_b(NetworkBuilder& b, const Tensor& x) {
  const Tensor three = unit(b, unit(b, x, 192, square(1)), 320, square(3, 2));
  Tensor seven = column(b, row(b, unit(b, x, 192, square(1)), 192, 7), 192, 7);
  seven = unit(b, seven, 192, square(3, 2));
  return b.concat({three, seven, b.max_pool(x, square(3, 2))}, 1);
}

// 8 x 8 blocks, figure 7: expanded banks.
Tensor mix_c(NetworkBuilder& b, const Tensor& x) {
  const Tensor direct = unit(b, x, 320, square(1));
  const Tensor three = unit(b, x, 384, square(1));
  const Tensor twice = unit(b, unit(b, x, 448, square(1)), 384, square(3, 1, 1));
  return b.concat({direct, b.concat({row(b, three, 384, 3), column(b, three, 384, 3)}, 1),
                   b.concat({row(b, twice, 384, 3), column(b, twice, 384, 3)}, 1), averaged(b, x, 192)},
                  1);
}

}  // namespace

void add_googlenet(NetworkBuilder& b, int64_t batch, int64_t size) {
  Tensor x = b.input("image", {batch, 3, size, size});
  x = b.max_pool(unit(b, x, 64, square(7, 2, 3)), square(3, 2), true);
  x = unit(b, unit(b, x, 64, square(1)), 192, square(3, 1, 1));
  x = b.max_pool(x, square(3, 2), true);
  x = googlenet_mix(b, x, {64, 96, 128, 16, 32, 32});
  x = googlenet_mix(b, x, {128, 128, 192, 32, 96, 64});
  x = b.max_pool(x, square(3, 2), true);
  x = googlenet_mix(b, x, {192, 96, 208, 16, 48, 64});
  x = googlenet_mix(b, x, {160, 112, 224, 24, 64, 64});
  x = googlenet_mix(b, x, {128, 128, 256, 24, 64, 64});
  x = googlenet_mix(b, x, {112, 144, 288, 32, 64, 64});
  x = googlenet_mix(b, x, {256, 160, 320, 32, 128, 128});
  x = b.max_pool(x, square(2, 2), true);
  x = googlenet_mix(b, x, {256, 160, 320, 32, 128, 128});
  x = googlenet_mix(b, x, {384, 192, 384, 48, 128, 128});
  b.output("logits", b.linear(b.flatten(b.global_average_pool(x)), 1000));
}

void add_inception_v3(NetworkBuilder& b, int64_t batch, int64_t size) {
  Tensor x = b.input("image", {batch, 3, size, size});
  x = unit(b, unit(b, x, 32, square(3, 2)), 32, square(3));
  x = b.max_pool(unit(b, x, 64, square(3, 1, 1)), square(3, 2));
  x = b.max_pool(unit(b, unit(b, x, 80, square(1)), 192, square(3)), square(3, 2));
  for (const int64_t pooled : {32, 64, 64}) x = mix_a(b, x, pooled);
  x = reduce_a(b, x);
  for (const int64_t inner : {128, 160, 160, 192}) x = mix_b(b, x, inner);
  x = reduce_b(b, x);
  x = mix_c(b, mix_c(b, x));
  b.output("logits", b.linear(b.flatten(b.global_average_pool(x)), 1000));
}

}  // namespace tensorsmith::graph::zoo

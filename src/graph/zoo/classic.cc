// AlexNet, VGG, SqueezeNet, DenseNet, DCGAN.
#include "graph/zoo/networks.h"

namespace tensorsmith::graph::zoo {
namespace {

Tensor rectified(NetworkBuilder& b, const Tensor& x, int64_t channels, const Window& window) {
  return b.activate(b.conv(x, channels, window, 1, true), Activation::kRelu);
}

// The three fully connected layers on top of AlexNet and VGG.
Tensor classify(NetworkBuilder& b, const Tensor& x, int64_t bins) {
  Tensor y = b.flatten(b.adaptive_average_pool(x, bins));
  y = b.activate(b.linear(y, 4096), Activation::kRelu);
  y = b.activate(b.linear(y, 4096), Activation::kRelu);
  return b.linear(y, 1000);
}

Tensor fire(NetworkBuilder& b, const Tensor& x, int64_t squeezed, int64_t expanded) {
  const Tensor s = rectified(b, x, squeezed, square(1));
  return b.concat({rectified(b, s, expanded, square(1)), rectified(b, s, expanded, square(3, 1, 1))}, 1);
}

Tensor norm_relu(NetworkBuilder& b, const Tensor& x) {
  return b.activate(b.batch_norm(x), Activation::kRelu);
}

}  // namespace

void add_alexnet(NetworkBuilder& b, int64_t batch, int64_t size) {
  Tensor x = b.input("image", {batch, 3, size, size});
  x = b.max_pool(rectified(b, x, 64, square(11, 4, 2)), square(3, 2));
  x = b.max_pool(rectified(b, x, 192, square(5, 1, 2)), square(3, 2));
  for (const int64_t channels : {384, 256, 256}) x = rectified(b, x, channels, square(3, 1, 1));
  b.output("logits", classify(b, b.max_pool(x, square(3, 2)), 6));
}

void add_vgg16(NetworkBuilder& b, int64_t batch, int64_t size) {
  Tensor x = b.input("image", {batch, 3, size, size});
  const std::vector<std::vector<int64_t>> stages = {
      {64, 64}, {128, 128}, {256, 256, 256}, {512, 512, 512}, {512, 512, 512}};
  for (const auto& stage : stages) {
    for (const int64_t channels : stage) x = rectified(b, x, channels, square(3, 1, 1));
    x = b.max_pool(x, square(2, 2));
  }
  b.output("logits", classify(b, x, 7));
}

void add_squeezenet(NetworkBuilder& b, int64_t batch, int64_t size) {
  Tensor x = b.input("image", {batch, 3, size, size});
  x = b.max_pool(rectified(b, x, 64, square(3, 2)), square(3, 2), true);
  x = b.max_pool(fire(b, fire(b, x, 16, 64), 16, 64), square(3, 2), true);
  x = b.max_pool(fire(b, fire(b, x, 32, 128), 32, 128), square(3, 2), true);
  x = fire(b, fire(b, x, 48, 192), 48, 192);
  x = fire(b, fire(b, x, 64, 256), 64, 256);
  x = b.global_average_pool(rectified(b, x, 1000, square(1)));
  b.output("logits", b.flatten(x));
}

void add_densenet121(NetworkBuilder& b, int64_t batch, int64_t size) {
  constexpr int64_t kGrowth = 32;
  Tensor x = b.input("image", {batch, 3, size, size});
  x = b.max_pool(b.conv_norm(x, 2 * kGrowth, square(7, 2, 3), Activation::kRelu), square(3, 2, 1));
  const std::vector<int> blocks = {6, 12, 24, 16};
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (int layer = 0; layer < blocks[i]; ++layer) {
      Tensor y = b.conv(norm_relu(b, x), 4 * kGrowth, square(1));
      y = b.conv(norm_relu(b, y), kGrowth, square(3, 1, 1));
      x = b.concat({x, y}, 1);
    }
    if (i + 1 < blocks.size())
      x = b.average_pool(b.conv(norm_relu(b, x), x.channels() / 2, square(1)), square(2, 2));
  }
  b.output("logits", b.linear(b.flatten(b.global_average_pool(norm_relu(b, x))), 1000));
}

void add_dcgan(NetworkBuilder& b, int64_t batch, int64_t size) {
  constexpr int64_t kNoise = 100;
  constexpr int64_t kFilters = 1024;
  const int64_t start = size / 16;
  Tensor x = b.input("noise", {batch, kNoise});
  x = b.activate(b.linear(x, kFilters * start * start, false), Activation::kRelu);
  x = b.reshape(x, {batch, kFilters, start, start});
  for (const int64_t channels : {512, 256, 128})
    x = norm_relu(b, b.conv_transpose(x, channels, square(4, 2, 1)));
  b.output("image", b.activate(b.conv_transpose(x, 3, square(4, 2, 1)), Activation::kTanh));
}

}  // namespace tensorsmith::graph::zoo

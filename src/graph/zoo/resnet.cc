// ResNet, ResNeXt, wide ResNet, ResNet-3D.
#include "graph/zoo/networks.h"

namespace tensorsmith::graph::zoo {
namespace {

constexpr int64_t kWidths[] = {64, 128, 256, 512};

// Two 3 x 3 (x 3) convolutions.
Tensor basic_block(NetworkBuilder& b, const Tensor& x, int64_t channels, int64_t stride, size_t rank) {
  Tensor y = b.conv_norm(x, channels, square(3, stride, 1, rank), Activation::kRelu);
  y = b.conv_norm(y, channels, square(3, 1, 1, rank), Activation::kNone);
  const bool same = stride == 1 && x.channels() == channels;
  const Tensor shortcut = same ? x : b.conv_norm(x, channels, square(1, stride, 0, rank), Activation::kNone);
  return b.activate(b.add(y, shortcut), Activation::kRelu);
}

// 1 x 1, 3 x 3 (which has the stride), 1 x 1 to four times the stage's width.
Tensor bottleneck(NetworkBuilder& b, const Tensor& x, int64_t planes, int64_t stride, const ResNet& net) {
  const int64_t inner = planes * net.width_per_group / 64 * net.groups;
  const int64_t channels = 4 * planes;
  Tensor y = b.conv_norm(x, inner, square(1), Activation::kRelu);
  y = b.conv_norm(y, inner, square(3, stride, 1), Activation::kRelu, net.groups);
  y = b.conv_norm(y, channels, square(1), Activation::kNone);
  const bool same = stride == 1 && x.channels() == channels;
  const Tensor shortcut = same ? x : b.conv_norm(x, channels, square(1, stride), Activation::kNone);
  return b.activate(b.add(y, shortcut), Activation::kRelu);
}

}  // namespace

void add_resnet(NetworkBuilder& b, int64_t batch, int64_t size, const ResNet& net) {
  Tensor x = b.input("image", {batch, 3, size, size});
  x = b.conv_norm(x, 64, square(7, 2, 3), Activation::kRelu);
  x = b.max_pool(x, square(3, 2, 1));
  for (size_t stage = 0; stage < 4; ++stage) {
    for (int64_t i = 0; i < net.blocks[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = net.bottleneck ? bottleneck(b, x, kWidths[stage], stride, net)
                         : basic_block(b, x, kWidths[stage], stride, 2);
    }
  }
  b.output("logits", b.linear(b.flatten(b.global_average_pool(x)), 1000));
}

void add_resnet3d18(NetworkBuilder& b, int64_t batch, int64_t size) {
  Tensor x = b.input("video", {batch, 3, 16, size, size});
  x = b.conv_norm(x, 64, {{3, 7, 7}, {1, 2, 2}, {1, 3, 3}}, Activation::kRelu);
  for (size_t stage = 0; stage < 4; ++stage) {
    for (int i = 0; i < 2; ++i) x = basic_block(b, x, kWidths[stage], stage > 0 && i == 0 ? 2 : 1, 3);
  }
  b.output("logits", b.linear(b.flatten(b.global_average_pool(x)), 400));
}

}  // namespace tensorsmith::graph::zoo

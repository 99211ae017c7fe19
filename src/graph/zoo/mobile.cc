// Networks of inverted bottlenecks: MobileNet v2 and v3, MnasNet, EfficientNet.
#include <algorithm>
#include <cmath>

#include "graph/zoo/networks.h"

namespace tensorsmith::graph::zoo {
namespace {

// Returns the nearest multiple of 8 that is at most a tenth below the value.
int64_t multiple_of_8(double channels) {
  const auto rounded = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return rounded < 0.9 * channels ? rounded + 8 : rounded;
}

Tensor squeeze_excite(NetworkBuilder& b, const Tensor& x, int64_t squeezed, Activation inner,
                      Activation gate) {
  Tensor s = b.conv(b.global_average_pool(x), squeezed, square(1), 1, true);
  s = b.conv(b.activate(s, inner), x.channels(), square(1), 1, true);
  return b.multiply(x, b.activate(s, gate));
}

struct InvertedBlock {
  int64_t kernel = 3;
  int64_t inner = 0;  // channels after the expansion, which is left out if they equal the input's
  int64_t channels = 0;
  int64_t stride = 1;
  Activation activation = Activation::kRelu;
  // Squeeze and excitation between the depthwise and the last convolution, if squeezed > 0.
  int64_t squeezed = 0;
  Activation squeeze_activation = Activation::kRelu;
  Activation gate = Activation::kSigmoid;
  double epsilon = 1e-5;
};

Tensor inverted_block(NetworkBuilder& b, const Tensor& x, const InvertedBlock& block) {
  Tensor y = x;
  if (block.inner != x.channels())
    y = b.conv_norm(y, block.inner, square(1), block.activation, 1, block.epsilon);
  y = b.conv_norm(y, block.inner, square(block.kernel, block.stride, block.kernel / 2), block.activation,
                  block.inner, block.epsilon);
  if (block.squeezed > 0) y = squeeze_excite(b, y, block.squeezed, block.squeeze_activation, block.gate);
  y = b.conv_norm(y, block.channels, square(1), Activation::kNone, 1, block.epsilon);
  return block.stride == 1 && x.channels() == block.channels ? b.add(x, y) : y;
}

struct Stage {
  int64_t expansion, kernel, stride, channels, blocks;
};

Tensor add_stages(NetworkBuilder& b, Tensor x, const std::vector<Stage>& stages, Activation activation,
                  bool squeeze) {
  for (const Stage& stage : stages) {
    for (int64_t i = 0; i < stage.blocks; ++i) {
      InvertedBlock block;
      block.kernel = stage.kernel;
      block.inner = x.channels() * stage.expansion;
      block.channels = stage.channels;
      block.stride = i == 0 ? stage.stride : 1;
      block.activation = activation;
      if (squeeze) {
        block.squeezed = std::max<int64_t>(1, x.channels() / 4);
        block.squeeze_activation = activation;
      }
      x = inverted_block(b, x, block);
    }
  }
  return x;
}

}  // namespace

void add_mobilenet_v2(NetworkBuilder& b, int64_t batch, int64_t size) {
  Tensor x = b.input("image", {batch, 3, size, size});
  x = b.conv_norm(x, 32, square(3, 2, 1), Activation::kRelu6);
  x = add_stages(b, x,
                 {{1, 3, 1, 16, 1},
                  {6, 3, 2, 24, 2},
                  {6, 3, 2, 32, 3},
                  {6, 3, 2, 64, 4},
                  {6, 3, 1, 96, 3},
                  {6, 3, 2, 160, 3},
                  {6, 3, 1, 320, 1}},
                 Activation::kRelu6, false);
  x = b.conv_norm(x, 1280, square(1), Activation::kRelu6);
  b.output("logits", b.linear(b.flatten(b.global_average_pool(x)), 1000));
}

void add_mobilenet_v3(NetworkBuilder& b, int64_t batch, int64_t size, bool large) {
  constexpr double kEpsilon = 1e-3;
  const Activation relu = Activation::kRelu;
  const Activation swish = Activation::kHardSwish;
  struct Row {
    int64_t kernel, inner, channels;
    bool squeeze;
    Activation activation;
    int64_t stride;
  };
  const std::vector<Row> rows =
      large ? std::vector<Row>{{3, 16, 16, false, relu, 1},   {3, 64, 24, false, relu, 2},
                               {3, 72, 24, false, relu, 1},   {5, 72, 40, true, relu, 2},
                               {5, 120, 40, true, relu, 1},   {5, 120, 40, true, relu, 1},
                               {3, 240, 80, false, swish, 2}, {3, 200, 80, false, swish, 1},
                               {3, 184, 80, false, swish, 1}, {3, 184, 80, false, swish, 1},
                               {3, 480, 112, true, swish, 1}, {3, 672, 112, true, swish, 1},
                               {5, 672, 160, true, swish, 2}, {5, 960, 160, true, swish, 1},
                               {5, 960, 160, true, swish, 1}}
            : std::vector<Row>{
                  {3, 16, 16, true, relu, 2},   {3, 72, 24, false, relu, 2},  {3, 88, 24, false, relu, 1},
                  {5, 96, 40, true, swish, 2},  {5, 240, 40, true, swish, 1}, {5, 240, 40, true, swish, 1},
                  {5, 120, 48, true, swish, 1}, {5, 144, 48, true, swish, 1}, {5, 288, 96, true, swish, 2},
                  {5, 576, 96, true, swish, 1}, {5, 576, 96, true, swish, 1}};
  Tensor x = b.input("image", {batch, 3, size, size});
  x = b.conv_norm(x, 16, square(3, 2, 1), swish, 1, kEpsilon);
  for (const Row& row : rows) {
    InvertedBlock block;
    block.kernel = row.kernel;
    block.inner = row.inner;
    block.channels = row.channels;
    block.stride = row.stride;
    block.activation = row.activation;
    block.squeezed = row.squeeze ? multiple_of_8(row.inner / 4.0) : 0;
    block.gate = Activation::kHardSigmoid;
    block.epsilon = kEpsilon;
    x = inverted_block(b, x, block);
  }
  x = b.conv_norm(x, 6 * x.channels(), square(1), swish, 1, kEpsilon);
  x = b.linear(b.flatten(b.global_average_pool(x)), large ? 1280 : 1024);
  b.output("logits", b.linear(b.activate(x, swish), 1000));
}

void add_mnasnet(NetworkBuilder& b, int64_t batch, int64_t size) {
  const Activation relu = Activation::kRelu;
  Tensor x = b.input("image", {batch, 3, size, size});
  x = b.conv_norm(x, 32, square(3, 2, 1), relu);
  x = add_stages(b, x,
                 {{1, 3, 1, 16, 1},
                  {3, 3, 2, 24, 3},
                  {3, 5, 2, 40, 3},
                  {6, 5, 2, 80, 3},
                  {6, 3, 1, 96, 2},
                  {6, 5, 2, 192, 4},
                  {6, 3, 1, 320, 1}},
                 relu, false);
  x = b.conv_norm(x, 1280, square(1), relu);
  b.output("logits", b.linear(b.flatten(b.global_average_pool(x)), 1000));
}

void add_efficientnet(NetworkBuilder& b, int64_t batch, int64_t size, double width, double depth) {
  const auto scaled = [&](int64_t channels) { return multiple_of_8(width * channels); };
  std::vector<Stage> stages = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                               {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
  for (Stage& stage : stages) {
    stage.channels = scaled(stage.channels);
    stage.blocks = std::ceil(depth * stage.blocks);
  }
  Tensor x = b.input("image", {batch, 3, size, size});
  x = b.conv_norm(x, scaled(32), square(3, 2, 1), Activation::kSwish);
  x = add_stages(b, x, stages, Activation::kSwish, true);
  x = b.conv_norm(x, 4 * x.channels(), square(1), Activation::kSwish);
  b.output("logits", b.linear(b.flatten(b.global_average_pool(x)), 1000));
}

}  // namespace tensorsmith::graph::zoo

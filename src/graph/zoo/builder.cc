#include "graph/zoo/builder.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::graph::zoo {
namespace {

int64_t product(const Shape& shape) {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  return n;
}

Shape pads_of(const Window& window) {
  Shape pads = window.padding;
  pads.insert(pads.end(), window.padding.begin(), window.padding.end());
  return pads;
}

// Numpy's broadcasting.
Shape broadcast(const Shape& a, const Shape& b) {
  Shape out = a.size() > b.size() ? a : b;
  const Shape& other = a.size() > b.size() ? b : a;
  const size_t lead = out.size() - other.size();
  for (size_t d = 0; d < other.size(); ++d) {
    int64_t& extent = out[lead + d];
    TS_CHECK(extent == other[d] || extent == 1 || other[d] == 1, "zoo: shapes do not broadcast");
    extent = std::max(extent, other[d]);
  }
  return out;
}

}  // namespace

int64_t Network::parameters() const {
  int64_t n = 0;
  for (const Weight& w : weights) n += w.trainable ? product(w.shape) : 0;
  return n;
}

Window square(int64_t kernel, int64_t stride, int64_t padding, size_t rank) {
  return {Shape(rank, kernel), Shape(rank, stride), Shape(rank, padding)};
}

Result<Network> NetworkBuilder::finish() && {
  if (error_) return *error_;
  return std::move(network_);
}

std::string NetworkBuilder::next_name(const std::string& op) {
  return op + "_" + std::to_string(counts_[op]++);
}

Tensor NetworkBuilder::input(const std::string& name, const Shape& shape, bool tokens) {
  network_.inputs.push_back({name, shape, tokens});
  return {name, shape, 1};
}

void NetworkBuilder::output(const std::string& name, const Tensor& x) {
  network_.operations.push_back({"Identity", next_name("Identity"), {x.name}, {name}, {}});
  network_.outputs.push_back({name, x.shape, false});
}

Tensor NetworkBuilder::weight(const std::string& name, const Shape& shape, double mean, double deviation) {
  network_.weights.push_back({name, shape, mean, deviation, {}, true});
  return {name, shape, mean * mean + deviation * deviation};
}

Tensor NetworkBuilder::table(const std::string& name, const Shape& shape, std::vector<float> values) {
  TS_CHECK(std::ssize(values) == product(shape), "zoo: a table of another size");
  double power = 0;
  for (float v : values) power += double{v} * v;
  power /= values.size();
  network_.weights.push_back({next_name(name), shape, 0, 0, std::move(values), false});
  return {network_.weights.back().name, shape, power};
}

Tensor NetworkBuilder::scalar(float value) { return table("scalar", {}, {value}); }

Tensor NetworkBuilder::integers(const Shape& shape, std::vector<int64_t> values) {
  network_.integers.push_back({next_name("integers"), shape, std::move(values)});
  return {network_.integers.back().name, shape, 1};
}

Tensor NetworkBuilder::apply(const std::string& op, const std::vector<Tensor>& inputs, const Shape& shape,
                             double power, std::map<std::string, AttributeValue> attributes) {
  Operation operation{op, next_name(op), {}, {}, std::move(attributes)};
  for (const Tensor& x : inputs) operation.inputs.push_back(x.name);
  Tensor out{operation.name + ".out", shape, power};
  operation.outputs.push_back(out.name);
  network_.operations.push_back(std::move(operation));
  return out;
}

Shape NetworkBuilder::slide(const std::string& op, const Tensor& x, int64_t channels, const Window& window,
                            bool ceil_mode) {
  Shape out = {x.shape[0], channels};
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t stride = window.strides[d];
    const int64_t free = x.shape[2 + d] + 2 * window.padding[d] - window.kernel[d];
    if (free < 0 && !error_) {
      error_ =
          Error{ErrorCode::kInvalidArgument, network_.name,
                "the input is too small: " + op + "_" + std::to_string(counts_[op]) + " has a kernel of " +
                    std::to_string(window.kernel[d]) + " for an extent of " + std::to_string(x.shape[2 + d])};
    }
    out.push_back(free < 0 ? 1 : (free + (ceil_mode ? stride - 1 : 0)) / stride + 1);
  }
  return out;
}

Tensor NetworkBuilder::conv(const Tensor& x, int64_t channels, const Window& window, int64_t groups,
                            bool bias) {
  const Shape shape = slide("Conv", x, channels, window, false);
  const std::string name = "Conv_" + std::to_string(counts_["Conv"]);
  Shape weights = {channels, x.channels() / groups};
  weights.insert(weights.end(), window.kernel.begin(), window.kernel.end());
  const double fan_in = product(weights) / channels;
  std::vector<Tensor> inputs = {x, weight(name + ".weight", weights, 0, 1 / std::sqrt(fan_in * x.power))};
  if (bias) inputs.push_back(weight(name + ".bias", {channels}, 0, 0.1));
  return apply("Conv", inputs, shape, 1,
               {{"kernel_shape", window.kernel},
                {"strides", window.strides},
                {"pads", pads_of(window)},
                {"group", groups}});
}

Tensor NetworkBuilder::conv_transpose(const Tensor& x, int64_t channels, const Window& window) {
  const std::string name = "ConvTranspose_" + std::to_string(counts_["ConvTranspose"]);
  Shape shape = {x.shape[0], channels};
  for (size_t d = 0; d < window.kernel.size(); ++d)
    shape.push_back((x.shape[2 + d] - 1) * window.strides[d] + window.kernel[d] - 2 * window.padding[d]);
  Shape weights = {x.channels(), channels};
  weights.insert(weights.end(), window.kernel.begin(), window.kernel.end());
  // An output element receives one in prod(strides) of the kernel's elements.
  const double fan_in = x.channels() * product(window.kernel) / product(window.strides);
  return apply("ConvTranspose", {x, weight(name + ".weight", weights, 0, 1 / std::sqrt(fan_in * x.power))},
               shape, 1,
               {{"kernel_shape", window.kernel}, {"strides", window.strides}, {"pads", pads_of(window)}});
}

Tensor NetworkBuilder::batch_norm(const Tensor& x, double epsilon) {
  const std::string name = "BatchNormalization_" + std::to_string(counts_["BatchNormalization"]);
  const Shape channel = {x.channels()};
  const Tensor scale = weight(name + ".weight", channel, 1, 0.1);
  const Tensor bias = weight(name + ".bias", channel, 0, 0.1);
  const double deviation = std::sqrt(x.power);
  const Tensor mean = weight(name + ".running_mean", channel, 0, 0.1 * deviation);
  network_.weights.back().trainable = false;
  const Tensor variance = weight(name + ".running_var", channel, x.power, 0.1 * x.power);
  network_.weights.back().trainable = false;
  return apply("BatchNormalization", {x, scale, bias, mean, variance}, x.shape, 1,
               {{"epsilon", static_cast<float>(epsilon)}});
}

Tensor NetworkBuilder::conv_norm(const Tensor& x, int64_t channels, const Window& window,
                                 Activation activation, int64_t groups, double epsilon) {
  return activate(batch_norm(conv(x, channels, window, groups), epsilon), activation);
}

Tensor NetworkBuilder::max_pool(const Tensor& x, const Window& window, bool ceil_mode) {
  return apply("MaxPool", {x}, slide("MaxPool", x, x.channels(), window, ceil_mode), 2 * x.power,
               {{"kernel_shape", window.kernel},
                {"strides", window.strides},
                {"pads", pads_of(window)},
                {"ceil_mode", int64_t{ceil_mode}}});
}

// Averaging keeps the mean of rectified values and reduces their variance.
constexpr double kAveragedPower = 0.5;

Tensor NetworkBuilder::average_pool(const Tensor& x, const Window& window) {
  return apply("AveragePool", {x}, slide("AveragePool", x, x.channels(), window, false),
               kAveragedPower * x.power,
               {{"kernel_shape", window.kernel},
                {"strides", window.strides},
                {"pads", pads_of(window)},
                {"count_include_pad", int64_t{1}}});
}

Tensor NetworkBuilder::global_average_pool(const Tensor& x) {
  Shape shape = x.shape;
  std::fill(shape.begin() + 2, shape.end(), 1);
  return apply("GlobalAveragePool", {x}, shape, kAveragedPower * x.power);
}

Tensor NetworkBuilder::adaptive_average_pool(const Tensor& x, int64_t size) {
  const int64_t n = x.size();
  if (n == size) return x;
  if (n % size == 0) return average_pool(x, square(n / size, n / size));
  // Bins have different sizes, so there is one matrix product per dimension.
  std::vector<float> rows(size * n, 0.0F);
  std::vector<float> columns(rows.size(), 0.0F);
  for (int64_t i = 0; i < size; ++i) {
    const int64_t begin = i * n / size;
    const int64_t end = ((i + 1) * n + size - 1) / size;
    for (int64_t k = begin; k < end; ++k) {
      const float share = 1.0F / (end - begin);
      rows[i * n + k] = share;
      columns[k * size + i] = share;
    }
  }
  const Tensor pooled = matmul(table("bins", {size, n}, std::move(rows)), x);
  Tensor out = matmul(pooled, table("bins", {n, size}, std::move(columns)));
  out.power = kAveragedPower * x.power;
  return out;
}

Tensor NetworkBuilder::linear(const Tensor& x, int64_t units, bool bias) {
  const int64_t inputs = x.shape.back();
  const double deviation = 1 / std::sqrt(inputs * x.power);
  const bool matrix = x.shape.size() == 2;
  const std::string op = matrix ? "Gemm" : "MatMul";
  const std::string name = op + "_" + std::to_string(counts_[op]);
  Shape shape = x.shape;
  shape.back() = units;
  if (!matrix) {
    const Tensor product = apply(op, {x, weight(name + ".weight", {inputs, units}, 0, deviation)}, shape, 1);
    return bias ? add(product, weight(name + ".bias", {units}, 0, 0.1)) : product;
  }
  std::vector<Tensor> operands = {x, weight(name + ".weight", {units, inputs}, 0, deviation)};
  if (bias) operands.push_back(weight(name + ".bias", {units}, 0, 0.1));
  return apply(op, operands, shape, 1, {{"transB", int64_t{1}}});
}

Tensor NetworkBuilder::linear_shared(const Tensor& x, const Tensor& weights) {
  return apply("Gemm", {x, weights}, {x.shape[0], weights.shape[0]}, x.power * weights.power * x.shape[1],
               {{"transB", int64_t{1}}});
}

Tensor NetworkBuilder::matmul(const Tensor& a, const Tensor& b) {
  const size_t ra = a.shape.size();
  const size_t rb = b.shape.size();
  TS_CHECK(ra >= 2 && rb >= 2 && a.shape[ra - 1] == b.shape[rb - 2], "zoo: matrices do not fit");
  Shape shape =
      broadcast(Shape(a.shape.begin(), a.shape.end() - 2), Shape(b.shape.begin(), b.shape.end() - 2));
  shape.push_back(a.shape[ra - 2]);
  shape.push_back(b.shape[rb - 1]);
  return apply("MatMul", {a, b}, shape, a.power * b.power * a.shape[ra - 1]);
}

Tensor NetworkBuilder::layer_norm(const Tensor& x, double epsilon) {
  const std::string name = "LayerNormalization_" + std::to_string(counts_["LayerNormalization"]);
  const Shape width = {x.shape.back()};
  const Tensor scale = weight(name + ".weight", width, 1, 0.1);
  const Tensor bias = weight(name + ".bias", width, 0, 0.1);
  return apply("LayerNormalization", {x, scale, bias}, x.shape, 1,
               {{"axis", int64_t{-1}}, {"epsilon", static_cast<float>(epsilon)}});
}

Tensor NetworkBuilder::gather(const Tensor& rows, const Tensor& tokens, int64_t axis) {
  Shape shape(rows.shape.begin(), rows.shape.begin() + axis);
  shape.insert(shape.end(), tokens.shape.begin(), tokens.shape.end());
  shape.insert(shape.end(), rows.shape.begin() + axis + 1, rows.shape.end());
  return apply("Gather", {rows, tokens}, shape, rows.power, {{"axis", axis}});
}

// Powers are those for a standard normal x, scaled.
Tensor NetworkBuilder::activate(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return unary("Relu", x, 0.5 * x.power);
    case Activation::kRelu6:
      return apply("Clip", {x, scalar(0), scalar(6)}, x.shape, 0.5 * x.power);
    case Activation::kSigmoid:
      return unary("Sigmoid", x, 0.29);
    case Activation::kHardSigmoid:
      return apply("HardSigmoid", {x}, x.shape, 0.28, {{"alpha", 1.0F / 6}, {"beta", 0.5F}});
    case Activation::kSwish:
      return multiply(x, unary("Sigmoid", x, 0.36));
    case Activation::kHardSwish:
      return unary("HardSwish", x, 0.36 * x.power);
    case Activation::kTanh:
      return unary("Tanh", x, 0.39);
    case Activation::kGelu: {
      const Tensor error = unary("Erf", divide(x, scalar(std::sqrt(2.0F))), 0.5);
      Tensor out = multiply(multiply(x, add(error, scalar(1))), scalar(0.5F));
      out.power = 0.43 * x.power;
      return out;
    }
    case Activation::kGeluTanh: {
      const Tensor cubic = multiply(apply("Pow", {x, scalar(3)}, x.shape, 15), scalar(0.044715F));
      const Tensor inner = multiply(add(x, cubic), scalar(std::sqrt(2 / 3.14159265F)));
      Tensor out = multiply(multiply(x, scalar(0.5F)), add(unary("Tanh", inner, 0.5), scalar(1)));
      out.power = 0.43 * x.power;
      return out;
    }
  }
  TS_CHECK(false, "zoo: unknown activation");
  return x;
}

Tensor NetworkBuilder::add(const Tensor& a, const Tensor& b) {
  return apply("Add", {a, b}, broadcast(a.shape, b.shape), a.power + b.power);
}

Tensor NetworkBuilder::multiply(const Tensor& a, const Tensor& b) {
  return apply("Mul", {a, b}, broadcast(a.shape, b.shape), a.power * b.power);
}

Tensor NetworkBuilder::divide(const Tensor& a, const Tensor& b) {
  return apply("Div", {a, b}, broadcast(a.shape, b.shape), a.power / b.power);
}

Tensor NetworkBuilder::softmax(const Tensor& x) {
  // The mean square is between 1 / n^2 (uniform) and 1 / n (one-hot); the latter is assumed.
  return apply("Softmax", {x}, x.shape, 1.0 / x.shape.back(), {{"axis", int64_t{-1}}});
}

Tensor NetworkBuilder::mean(const Tensor& x) {
  Shape shape = x.shape;
  shape.back() = 1;
  return apply("ReduceMean", {x}, shape, x.power, {{"axes", Shape{-1}}, {"keepdims", int64_t{1}}});
}

Tensor NetworkBuilder::concat(const std::vector<Tensor>& parts, int64_t axis) {
  Shape shape = parts[0].shape;
  shape[axis] = 0;
  double power = 0;
  for (const Tensor& part : parts) {
    shape[axis] += part.shape[axis];
    power += part.power * part.shape[axis];
  }
  return apply("Concat", parts, shape, power / shape[axis], {{"axis", axis}});
}

Tensor NetworkBuilder::reshape(const Tensor& x, const Shape& shape) {
  TS_CHECK(product(shape) == product(x.shape), "zoo: reshape to another number of elements");
  return apply("Reshape", {x, integers({std::ssize(shape)}, shape)}, shape, x.power);
}

Tensor NetworkBuilder::flatten(const Tensor& x) {
  return apply("Flatten", {x}, {x.shape[0], product(x.shape) / x.shape[0]}, x.power, {{"axis", int64_t{1}}});
}

Tensor NetworkBuilder::transpose(const Tensor& x, const Shape& permutation) {
  Shape shape;
  for (int64_t d : permutation) shape.push_back(x.shape[d]);
  return apply("Transpose", {x}, shape, x.power, {{"perm", permutation}});
}

Tensor NetworkBuilder::slice(const Tensor& x, int64_t axis, int64_t begin, int64_t end) {
  Shape shape = x.shape;
  shape[axis] = end - begin;
  return apply("Slice", {x, integers({1}, {begin}), integers({1}, {end}), integers({1}, {axis})}, shape,
               x.power);
}

}  // namespace tensorsmith::graph::zoo

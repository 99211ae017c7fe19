// Builds networks operator by operator and infers their shapes.
//
// Weights are scaled as by He et al. (2015) and LeCun et al. (1998), based on the expected mean
// square of each value: a layer's weights have the variance 1 / (fan in x mean square of its
// input), so that its outputs have mean square 1 at any depth, and nothing overflows or vanishes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/zoo/network.h"

namespace tensorsmith::graph::zoo {

struct Tensor {
  std::string name;
  Shape shape;
  double power = 1;  // expected mean square of the elements

  int64_t channels() const { return shape[1]; }
  int64_t size() const { return shape.back(); }
};

enum class Activation : uint8_t {
  kNone,
  kRelu,
  kRelu6,
  kSigmoid,
  kHardSigmoid,
  kSwish,      // x * sigmoid(x)
  kHardSwish,  // x * hard_sigmoid(x)
  kTanh,
  kGelu,      // by the error function
  kGeluTanh,  // the approximation by tanh (Hendrycks and Gimpel, 2016)
};

// Kernel, strides and padding on both sides, per spatial dimension.
struct Window {
  Shape kernel;
  Shape strides;
  Shape padding;
};
// Returns a window that is the same in every spatial dimension.
Window square(int64_t kernel, int64_t stride = 1, int64_t padding = 0, size_t rank = 2);

class NetworkBuilder {
 public:
  explicit NetworkBuilder(std::string name) { network_.name = std::move(name); }
  // Returns the network, or the first problem: for example an input that is too small for a layer.
  Result<Network> finish() &&;

  Tensor input(const std::string& name, const Shape& shape, bool tokens = false);
  void output(const std::string& name, const Tensor& x);

  // Parameters are uniform around `mean`. Scalars and tables of the architecture have explicit
  // values.
  Tensor weight(const std::string& name, const Shape& shape, double mean, double deviation);
  Tensor table(const std::string& name, const Shape& shape, std::vector<float> values);
  Tensor scalar(float value);

  // N C spatial... -> N channels spatial...; in conv_transpose, strides enlarge the image.
  Tensor conv(const Tensor& x, int64_t channels, const Window& window, int64_t groups = 1, bool bias = false);
  Tensor conv_transpose(const Tensor& x, int64_t channels, const Window& window);
  Tensor batch_norm(const Tensor& x, double epsilon = 1e-5);
  // Adds a convolution without bias, batch normalization and an activation.
  Tensor conv_norm(const Tensor& x, int64_t channels, const Window& window, Activation activation,
                   int64_t groups = 1, double epsilon = 1e-5);
  Tensor max_pool(const Tensor& x, const Window& window, bool ceil_mode = false);
  Tensor average_pool(const Tensor& x, const Window& window);  // padding counts in the average
  Tensor global_average_pool(const Tensor& x);
  // Averages of size x size bins that divide the image as evenly as possible, for any image (PyTorch's
  // AdaptiveAvgPool2d: bin i covers [floor(i n / size), ceil((i + 1) n / size))).
  Tensor adaptive_average_pool(const Tensor& x, int64_t size);

  // ... inputs -> ... units. Two dimensions: Gemm, as exporters write it; more: MatMul and Add.
  Tensor linear(const Tensor& x, int64_t units, bool bias = true);
  // A linear layer with the given weights [units, inputs], which are used elsewhere, too. Two
  // dimensions.
  Tensor linear_shared(const Tensor& x, const Tensor& weights);
  Tensor matmul(const Tensor& a, const Tensor& b);
  Tensor layer_norm(const Tensor& x, double epsilon);
  // Returns rows[tokens]: any shape of indices -> that shape, width.
  Tensor gather(const Tensor& rows, const Tensor& tokens, int64_t axis = 0);

  Tensor activate(const Tensor& x, Activation activation);
  Tensor add(const Tensor& a, const Tensor& b);
  Tensor multiply(const Tensor& a, const Tensor& b);
  Tensor divide(const Tensor& a, const Tensor& b);
  Tensor softmax(const Tensor& x);  // over the last dimension
  Tensor mean(const Tensor& x);     // over the last dimension, which is kept
  Tensor concat(const std::vector<Tensor>& parts, int64_t axis);
  Tensor reshape(const Tensor& x, const Shape& shape);
  Tensor flatten(const Tensor& x);  // from dimension 1 on
  Tensor transpose(const Tensor& x, const Shape& permutation);
  Tensor slice(const Tensor& x, int64_t axis, int64_t begin, int64_t end);
  // Adds an operator with one output whose shape and power the caller knows.
  Tensor apply(const std::string& op, const std::vector<Tensor>& inputs, const Shape& shape, double power,
               std::map<std::string, AttributeValue> attributes = {});
  Tensor integers(const Shape& shape, std::vector<int64_t> values);

 private:
  // Returns the output extents of a window over x's spatial dimensions; records an error if there
  // are none.
  Shape slide(const std::string& op, const Tensor& x, int64_t channels, const Window& window, bool ceil_mode);
  std::string next_name(const std::string& op);
  Tensor unary(const std::string& op, const Tensor& x, double power) {
    return apply(op, {x}, x.shape, power);
  }

  Network network_;
  std::map<std::string, int> counts_;  // names given, by operator
  std::optional<Error> error_;
};

}  // namespace tensorsmith::graph::zoo

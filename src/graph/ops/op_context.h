// The context of an operator's emitter: its node, its input buffers, attributes with checks, and
// the workload under construction.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/emit.h"

namespace tensorsmith::graph {

using Shape = std::vector<int64_t>;
using Buffers = std::vector<ir::Buffer>;

// Larger tensors are rejected: below these limits, no product of extents overflows.
inline constexpr int64_t kMaxElements = int64_t{1} << 33;
inline constexpr size_t kMaxRank = 16;
// Largest number of evaluations of an operation's body. Even these would take weeks.
inline constexpr double kMaxPoints = 4503599627370496.0;  // 2^52
// Window geometry, pads, repeats: largest absolute value, so that sums and products of two fit into
// 64 bits.
inline constexpr int64_t kMaxGeometry = int64_t{1} << 30;

// Returns the dtype of an ONNX TensorProto.DataType number; nullopt for strings, complex numbers
// and unknown ones.
inline std::optional<ir::DType> onnx_dtype(int64_t data_type) {
  return find_dtype(&DTypeRow::onnx, data_type);
}
// Returns the name of an ONNX TensorProto.DataType number, "float8e4m3fn", also of types that are not supported.
std::string onnx_type_name(int64_t data_type);
// Returns, for example, "f32[1,3,224,224]".
std::string describe(ir::DType dtype, const Shape& shape);
// Returns whether each extent is >= 0, the rank is at most kMaxRank and the product of the non-zero
// extents is at most kMaxElements.
bool is_reasonable(std::span<const int64_t> shape);
int64_t product(std::span<const int64_t> extents);  // of a reasonable shape

// Returns a tensor of rank 1.
lower::Tensor vector_of(ir::DType dtype, std::span<const int64_t> values);
lower::Tensor vector_of(ir::DType dtype, std::span<const double> values);

// Name of an attribute that ONNX does not have. The pass round_products sets it on nodes that sum products;
// the factors of these products are then rounded to TF32.
inline constexpr const char* kRoundFactors = "tensorsmith.round_tf32";

class OpContext {
 public:
  OpContext(const Graph& graph, const Node& node, std::span<const ir::Buffer> inputs,
            WorkloadBuilder& builder)
      : graph_(graph), node_(node), inputs_(inputs), builder_(builder) {}

  const Node& node() const { return node_; }
  int opset() const { return node_.opset; }
  // Returns whether the node names its output i.
  bool wants_output(size_t i) const { return i < node_.outputs.size() && node_.outputs[i] != kNoValue; }

  Error invalid(std::string reason) const;
  Error unsupported(std::string reason) const;
  // Returns the first error of an attribute getter, compute(), reduce() or reduce_arg(). A call that fails
  // returns a harmless value, and emit() reports the error, so emitters need not check each call.
  const std::optional<Error>& error() const { return error_; }

  size_t num_inputs() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const ir::Buffer& in(size_t i) const { return inputs_[i]; }
  const Shape& shape(size_t i) const { return inputs_[i]->shape; }
  size_t rank(size_t i) const { return inputs_[i]->shape.size(); }
  ir::DType dtype(size_t i) const { return inputs_[i]->dtype; }
  // Returns the dtype in the model: emitters see inputs of f16 and bf16 as f32.
  ir::DType declared_dtype(size_t i) const;
  // The input's contents if they are known, else null.
  const lower::Tensor* constant(size_t i) const;
  // If input i is the second output of a MaxPool, returns the shape of that MaxPool's input 0; otherwise
  // null.
  const Shape* pooled_shape(size_t i) const;
  // Returns the contents of an input that determines shapes or index maps; kUnsupported if they are
  // known only at run time.
  Result<std::vector<int64_t>> constant_ints(size_t i, std::string_view what) const;
  Result<std::vector<double>> constant_floats(size_t i, std::string_view what) const;

  bool has_attr(std::string_view name) const;
  int64_t int_attr(std::string_view name, int64_t otherwise);
  double float_attr(std::string_view name, double otherwise);
  std::string string_attr(std::string_view name, std::string otherwise);
  std::optional<std::vector<int64_t>> ints_attr(std::string_view name);
  std::optional<std::vector<double>> floats_attr(std::string_view name);
  std::optional<std::vector<std::string>> strings_attr(std::string_view name);
  // Returns an integer list that must have `count` values within +-kMaxGeometry; if it is absent,
  // all are `otherwise`.
  std::vector<int64_t> geometry_attr(std::string_view name, size_t count, int64_t otherwise);
  // Negative axes count from the end; it is an error if the axis is outside [-rank, rank).
  Result<size_t> normalize_axis(int64_t axis, size_t rank) const;
  Result<std::vector<size_t>> normalize_axes(std::span<const int64_t> axes, size_t rank) const;  // distinct

  // Adds an operation with a descriptive name ("pad", "conv2d"). Unreasonable extents set error().
  ir::Buffer compute(const std::string& name, std::vector<ir::Axis> spatial, ir::Expr body);
  ir::Buffer reduce(const std::string& name, std::vector<ir::Axis> spatial, std::vector<ir::Axis> reduce_axes,
                    ir::Combiner combiner, ir::Expr body);
  // Returns a * b, with factors rounded as kRoundFactors demands.
  ir::Expr product(const ir::Expr& a, const ir::Expr& b) const;
  // Returns the best value and its index.
  Buffers reduce_arg(const std::string& name, std::vector<ir::Axis> spatial,
                     std::vector<ir::Axis> reduce_axes, ir::Combiner combiner, ir::Expr value,
                     ir::Expr index);

 private:
  Result<const lower::Tensor*> constant_vector(size_t i, std::string_view what, bool floats) const;
  template <class T>
  const T* find_attr(std::string_view name, const char* type);
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }
  void check_axes(const std::string& name, std::vector<ir::Axis>& spatial,
                  std::vector<ir::Axis>& reduce_axes);

  const Graph& graph_;
  const Node& node_;
  std::span<const ir::Buffer> inputs_;
  WorkloadBuilder& builder_;
  std::optional<Error> error_;
};

}  // namespace tensorsmith::graph

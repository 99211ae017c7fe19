// What an operator's emitter sees: its node, its input buffers, attributes with checks, and the workload
// under construction.
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

// Larger tensors are refused: no product of extents overflows below these limits.
inline constexpr int64_t kMaxElements = int64_t{1} << 33;
inline constexpr size_t kMaxRank = 16;
// Body evaluations of one operation: weeks of work.
inline constexpr double kMaxPoints = 4503599627370496.0;  // 2^52
// Window geometry, pads, repeats: |value| at most this, so that sums and products of two fit into 64 bits.
inline constexpr int64_t kMaxGeometry = int64_t{1} << 30;

// The dtype of an ONNX TensorProto.DataType number; nullopt for strings, complex numbers and unknown ones.
std::optional<ir::DType> onnx_dtype(int64_t data_type);
// "f32[1,3,224,224]"
std::string describe(ir::DType dtype, const Shape& shape);
// True if each extent is >= 0, the rank is at most kMaxRank and the product of the non-zero extents is at
// most kMaxElements.
bool is_reasonable(std::span<const int64_t> shape);
int64_t product(std::span<const int64_t> extents);  // of a reasonable shape

// Attribute of a product whose factors are rounded to TF32 (round_products). No operator of ONNX has it.
inline constexpr const char* kRoundFactors = "tensorsmith.round_tf32";

class OpContext {
 public:
  OpContext(const Graph& graph, const Node& node, std::span<const ir::Buffer> inputs,
            WorkloadBuilder& builder)
      : graph_(graph), node_(node), inputs_(inputs), builder_(builder) {}

  const Node& node() const { return node_; }
  int opset() const { return node_.opset; }
  // Whether the node names its output i.
  bool wants_output(size_t i) const { return i < node_.outputs.size() && node_.outputs[i] != kNoValue; }

  Error invalid(std::string reason) const;
  Error unsupported(std::string reason) const;
  // The first error of an attribute getter or of compute(); emit() reports it, so that emitters need not look
  // after each call (the calls return harmless values).
  const std::optional<Error>& error() const { return error_; }

  size_t num_inputs() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const ir::Buffer& in(size_t i) const { return inputs_[i]; }
  const Shape& shape(size_t i) const { return inputs_[i]->shape; }
  size_t rank(size_t i) const { return inputs_[i]->shape.size(); }
  ir::DType dtype(size_t i) const { return inputs_[i]->dtype; }
  // As the model has it: emitters see inputs of f16 and bf16 as f32.
  ir::DType declared_dtype(size_t i) const;
  // The input's contents if they are known, else null.
  const lower::Tensor* constant(size_t i) const;
  // The shape of input 0 of the MaxPool whose second output the input is; null where it is none.
  const Shape* pooled_shape(size_t i) const;
  // Contents of an input that decides shapes or index maps; kUnsupported if they are only known at run time.
  Result<std::vector<int64_t>> constant_ints(size_t i, std::string_view what) const;
  Result<std::vector<double>> constant_floats(size_t i, std::string_view what) const;

  bool has_attr(std::string_view name) const;
  int64_t int_attr(std::string_view name, int64_t otherwise);
  double float_attr(std::string_view name, double otherwise);
  std::string string_attr(std::string_view name, std::string otherwise);
  std::optional<std::vector<int64_t>> ints_attr(std::string_view name);
  std::optional<std::vector<double>> floats_attr(std::string_view name);
  std::optional<std::vector<std::string>> strings_attr(std::string_view name);
  // An integer list that must hold count values within +-kMaxGeometry; filled with otherwise if absent.
  std::vector<int64_t> geometry_attr(std::string_view name, size_t count, int64_t otherwise);
  // Negative axes count from the back; error if out of [-rank, rank).
  Result<size_t> normalize_axis(int64_t axis, size_t rank) const;
  Result<std::vector<size_t>> normalize_axes(std::span<const int64_t> axes, size_t rank) const;  // distinct

  // An operation named after what it does ("pad", "conv2d"). Unreasonable extents are an error().
  ir::Buffer compute(const std::string& name, std::vector<ir::Axis> spatial, ir::Expr body);
  ir::Buffer reduce(const std::string& name, std::vector<ir::Axis> spatial, std::vector<ir::Axis> reduce_axes,
                    ir::Combiner combiner, ir::Expr body);
  // a * b, of factors as kRoundFactors says.
  ir::Expr product(const ir::Expr& a, const ir::Expr& b) const;
  // Best value and its index.
  Buffers reduce_arg(const std::string& name, std::vector<ir::Axis> spatial,
                     std::vector<ir::Axis> reduce_axes, ir::Combiner combiner, ir::Expr value,
                     ir::Expr index);

 private:
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

// Tensor-expression workloads: the computation without any execution order. A workload is a
// directed acyclic graph of operations; each compute operation defines every element of its output
// by an expression over axes:
//
//   C[i, j] = sum_{k} A[i, k] * B[k, j]           spatial i, j; reduce k; combiner kSum
//   P[n, c, h, w] = select(h >= 1 && h < 57 && ..., X[n, c, h - 1, w - 1], 0)
//
// Loads in a body may use any index expression, including other loads (Gather).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/expr.h"

namespace tensorsmith::ir {

struct Axis {
  Var var;
  int64_t extent = 1;
};

enum class Combiner : uint8_t {
  kNone,  // no reduction
  kSum,
  kProd,
  kMax,
  kMin,
  // Two bodies (value, index) and two outputs (best value, its index). Of equal values, the one
  // with the smallest index is chosen.
  kArgMax,
  kArgMin,
};
std::string_view to_string(Combiner combiner);

// Returns the combiner's neutral element: 0, 1, -inf/lowest, +inf/highest. For kArgMax/kArgMin,
// that of the value.
Expr identity_of(Combiner combiner, DType dtype);
// Returns combine(accumulated, next) for the single-valued combiners.
Expr combine(Combiner combiner, Expr accumulated, Expr next);

enum class OperationKind : uint8_t { kPlaceholder, kCompute };

struct Operation {
  OperationKind kind = OperationKind::kCompute;
  std::string name;          // unique in the workload
  bool is_constant = false;  // placeholder whose contents are known when the model is compiled (weights)
  // Constant of bytes that use only 7 bits: i8 from -64 to 64, u8 up to 128 (quantizers call this
  // reduce_range). Sums of two products with bytes of the other signedness fit in i16.
  bool reduced_range = false;
  std::vector<Axis> spatial;  // one per dimension of the outputs, extents = shape
  std::vector<Axis> reduce;
  Combiner combiner = Combiner::kNone;
  std::vector<Expr> bodies;     // compute: one, or two for kArgMax/kArgMin; dtype = the output's
  std::vector<Buffer> outputs;  // as many as bodies; a placeholder has one

  const Buffer& output() const { return outputs.front(); }
  bool is_placeholder() const { return kind == OperationKind::kPlaceholder; }
  bool has_reduction() const { return combiner != Combiner::kNone; }
};
using OperationRef = std::shared_ptr<const Operation>;

// Largest and smallest value of a constant of reduced range; `dtype` is i8 or u8.
inline constexpr int64_t reduced_range_max(DType dtype) { return dtype == DType::kU8 ? 128 : 64; }
inline constexpr int64_t reduced_range_min(DType dtype) { return dtype == DType::kU8 ? 0 : -64; }

OperationRef placeholder(std::string name, DType dtype, std::vector<int64_t> shape, bool is_constant = false,
                         bool reduced_range = false);
// Makes a compute operation, with output buffers that are named like the operation ("name", and
// "name.index" for the second).
OperationRef compute(std::string name, std::vector<Axis> spatial, std::vector<Axis> reduce, Combiner combiner,
                     std::vector<Expr> bodies);

struct Workload {
  std::vector<OperationRef>
      operations;               // producers before consumers; placeholders anywhere before their first use
  std::vector<Buffer> outputs;  // each is an output of an operation

  std::vector<Buffer> inputs() const;  // placeholder buffers in operation order
  // Returns the index of the operation that defines the buffer, or nullopt.
  std::optional<size_t> producer_of(const BufferNode* buffer) const;
};

// Checks the rules for workloads: unique names, defined buffers, topological order, dtypes, axes
// used only by their own operation, index counts. The error's place names the operation.
Status verify(const Workload& workload);

// Returns the floating-point and integer operations of the whole workload, as used for FLOP/s: a
// multiply-add counts 2, each intrinsic 1; index arithmetic, selects, comparisons and casts count
// 0.
double flop_count(const Workload& workload);

}  // namespace tensorsmith::ir

// The compute DAG as TVM prints it (ComputeDAG's text in records of Ansor and TenSet), as a syntax tree:
//
//   data = PLACEHOLDER [128, 64, 56, 56]
//   pad(i0, i1, i2, i3) = tir.if_then_else(((i2 >= 1) && (i2 < 57)), data[i0, i1, (i2 - 1), i3], 0f)
//   pool(ax0, ax1, ax2, ax3) max= pad[ax0, ax1, ((ax2*2) + rv0), ax3]
//
// The text has no dtypes and no extents; record/ansor/dag.h infers them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"
#include "ir/workload.h"

namespace tensorsmith::record {

struct DagNode {
  enum class Kind : uint8_t {
    kInt,    // integer literal
    kFloat,  // floating-point literal
    kAxis,   // index: into the operation's axes, spatial then reduce
    kRead,   // index: the operation read; children: one index per dimension
    kUnary,
    kBinary,
    kSelect,  // condition, a, b
    kCast,    // to dtype
    kCall,    // intrinsic
  };
  Kind kind = Kind::kInt;
  int index = 0;
  int64_t integer = 0;
  double number = 0;
  ir::DType dtype = ir::DType::kF32;  // kFloat, kCast
  ir::UnaryOp unary = ir::UnaryOp::kNeg;
  ir::BinaryOp binary = ir::BinaryOp::kAdd;
  ir::Intrinsic intrinsic = ir::Intrinsic::kExp;
  std::vector<int> children;  // indices into DagOperation::nodes
  int depth = 1;              // levels of the tree below this node, with its own
  int line = 0, column = 0;
};

struct DagOperation {
  std::string name;
  bool is_placeholder = false;
  std::vector<int64_t> shape;     // only for placeholders
  std::vector<std::string> axes;  // spatial, then reduce axes in the order of their first use
  size_t rank = 0;                // number of spatial axes, or of dimensions of a placeholder
  ir::Combiner combiner = ir::Combiner::kNone;
  std::vector<DagNode> nodes;
  int body = -1;
  int line = 0, column = 0;
};

using DagSyntax = std::vector<DagOperation>;

// Errors: kCorrupt for text that does not follow the syntax, kUnsupported for text that TVM may
// print but we cannot compute (extern calls, reductions of tuples); the place is "line:column".
// Never crashes (fuzzed): the nesting of the text, the depth of each tree (DagNode::depth) and the
// number of operations are limited.
Result<DagSyntax> parse_dag_syntax(std::string_view text);

// TVM's name of the intrinsic, without "tir."; empty if it has none.
std::string_view tvm_name(ir::Intrinsic intrinsic);

}  // namespace tensorsmith::record

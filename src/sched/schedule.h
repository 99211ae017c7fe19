// A schedule: for each stage of a workload, how its axes become loops and where the loops go. Plain immutable
// value; applying a step returns a new one. Loop programs are made from it by lower/.
//
// Model (that of Halide and TVM's tensor expressions): every operation is a stage with its own list of leaf
// iterators, obtained from its root axes (spatial then reduce) by splits and fuses. A stage is computed at
// root, attached at an iterator of another stage, or inlined into its readers. Only the region that the
// attach point needs is computed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/stmt.h"
#include "ir/workload.h"
#include "target/target.h"

namespace tensorsmith::sched {

enum class IterKind : uint8_t { kSpatial, kReduce, kMixed /* fused of both */ };
enum class Annotation : uint8_t {
  kNone,
  kUnroll,
  kVectorize,
  kParallel,
  kVThread,
  kBlockX,
  kThreadX,
  kBlockY,
  kThreadY,
  kBlockZ,
  kThreadZ,
};
std::string_view to_string(Annotation annotation);

// What happens when factors do not divide the extent.
enum class TailPolicy : uint8_t {
  kPredicate,  // full loops, each statement guarded by the original extent
  kPeel,       // lowering makes a guard-free main loop and a separate tail (outermost split loop is cut)
};

struct Iterator {
  std::string name;  // "i", "i.0", "i.1", "i.0.j.0.fused"
  IterKind kind = IterKind::kSpatial;
  Annotation annotation = Annotation::kNone;
};

// parent = ((children[0] * lengths[0] + children[1]) * lengths[1] + children[2]) ...; lengths are the extents
// of children[1..]; the outermost gets ceil(extent / product of lengths).
struct SplitRelation {
  int parent = 0;
  std::vector<int> children;     // outer to inner
  std::vector<int64_t> lengths;  // children.size() - 1
  TailPolicy tail = TailPolicy::kPredicate;
};
// child enumerates the parents in row-major order, outer first.
struct FuseRelation {
  std::vector<int> parents;
  int child = 0;
};
using Relation = std::variant<SplitRelation, FuseRelation>;

// Physical layout of a tensor: dimension d of storage holds (index[dims[d].dim] / dims[d].divisor) %
// dims[d].extent. Storage shape = the extents (may pad). Example, NCHW -> NCHW16c with C = 40:
//   {{0,1,N}, {1,16,3}, {2,1,H}, {3,1,W}, {1,1,16}}.
struct LayoutDim {
  int dim = 0;
  int64_t divisor = 1;
  int64_t extent = 1;
  friend bool operator==(const LayoutDim&, const LayoutDim&) = default;
};
using Layout = std::vector<LayoutDim>;

enum class AttachKind : uint8_t { kRoot, kInlined, kAt };

struct Stage {
  ir::OperationRef op;              // current definition (cache steps, rfactor and inlining rewrite it)
  std::vector<Iterator> iterators;  // arena: roots first (spatial then reduce), then created ones
  std::vector<Relation> relations;  // in the order of creation
  std::vector<int> leaves;          // arena ids, outer to inner
  AttachKind attach = AttachKind::kRoot;
  int attach_stage = -1;     // kAt: stage index
  int attach_iterator = -1;  // kAt: arena id of an iterator of that stage that is a leaf
  int64_t auto_unroll_max_step = 0;
  // Reduction init: before the leaf with this arena id; -1 = before the outermost reduce leaf.
  int init_at = -1;
  ir::MemoryScope scope = ir::MemoryScope::kGlobal;
  std::optional<Layout> layout;  // storage layout of the stage's output (constants and intermediates)
  std::optional<std::pair<int64_t, int64_t>>
      storage_align;  // {factor, offset} in elements of the innermost-but-one stride
  int storage_align_iterator = -1;
};

struct Schedule {
  std::vector<Stage> stages;        // producers before consumers, placeholders included
  std::vector<ir::Buffer> outputs;  // the workload's outputs (cache_write keeps them)

  static Schedule create(const ir::Workload& workload);
  // The rewritten workload (for reference evaluation of the schedule's own stages).
  ir::Workload workload() const;
  std::optional<size_t> stage_named(std::string_view name) const;
  // Stages that read the output of stage s through non-inlined definitions, ascending.
  std::vector<size_t> consumers_of(size_t s) const;
};

// Constant loop extents and the region of each root axis, after bound inference.
struct StageBounds {
  std::vector<int64_t> extents;  // by arena id
  // By root axis: the first index computed, as an expression over the loop variables of enclosing stages
  // (index 0 in the loops inside), and how many. Root stages have {0, axis extent}.
  std::vector<ir::Expr> root_min;
  std::vector<int64_t> root_extent;
};
struct Bounds {
  std::vector<StageBounds> stages;              // by stage index; empty for placeholders and inlined stages
  std::vector<std::vector<ir::Var>> loop_vars;  // by stage and arena id: the variables root_min refers to
};
// Extents of all loops: consumers first, the region that each attached stage must compute is the bounding box
// of all reads inside the attach point. The error names the stage whose region cannot be bounded.
Result<Bounds> infer_bounds(const Schedule& schedule);

}  // namespace tensorsmith::sched

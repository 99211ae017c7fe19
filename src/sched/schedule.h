// A schedule: how the axes of each stage of a workload become loops, and where the loops are
// placed. It is a plain value: apply() executes one step on it, in place. lower/ turns it into a
// loop program.
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

#include "base/id.h"
#include "ir/stmt.h"
#include "ir/workload.h"
#include "sched/reads.h"
#include "target/target.h"

namespace tensorsmith::sched {

enum class IterKind : uint8_t { kSpatial, kReduce };
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
// Kind of loop that a loop with the annotation becomes in a program.
ir::ForKind loop_kind(Annotation annotation);
ir::ThreadAxis thread_axis(Annotation annotation);  // kNone unless loop_kind() is kThread

// Handling of factors that do not divide the extent.
enum class TailPolicy : uint8_t {
  kPredicate,  // full loops, each statement guarded by the original extent
  kPeel,       // lowering makes a guard-free main loop and a separate tail (outermost split loop is cut)
  kShift,      // the last tile starts earlier and ends with the extent; the overlap with the previous tile is
               // computed twice. Where that is not possible (relations.h, shifts_last_tile): as kPeel
  kOverrun,    // the last tile is as long as the others; its values beyond the extent are never read. For
               // attached stages, which have storage of their own, if all elements that the tile reads exist
               // (relations.h, may_overrun); else as kPeel
};

struct Iterator {
  std::string name;  // "i", "i.0", "i.1", "i.0.j.0.fused"
  IterKind kind = IterKind::kSpatial;
  Annotation annotation = Annotation::kNone;
};

// Index into Stage::iterators, which does not change when loops are changed.
using IteratorId = Id<Iterator>;

// parent = row-major index of the children: ((children[0] * e1 + children[1]) * e2 + children[2])
// ..., where ei is the extent of children[i] after bound inference (Bounds). The lengths are
// requested extents:
//  - normally those of children[1..]; the outermost gets ceil(extent / product of lengths);
//  - with outer_lengths, those of all but the innermost, which gets the rest.
// infer_bounds clamps a length to what remains of the parent's extent (TVM: min(factor, extent)),
// except where it is bound to a thread axis. So code that uses a relation reads Bounds::extents,
// never the lengths.
struct SplitRelation {
  IteratorId parent;
  std::vector<IteratorId> children;  // outer to inner
  std::vector<int64_t> lengths;      // children.size() - 1
  TailPolicy tail = TailPolicy::kPredicate;
  bool outer_lengths = false;
};
// The child enumerates the parents in row-major order, outer first. Without parents it is a loop of
// extent 1 (Ansor makes one for a stage without axes).
struct FuseRelation {
  std::vector<IteratorId> parents;
  IteratorId child;
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

// Current index into Schedule::stages.
using StageId = Id<struct Stage>;

struct Stage {
  ir::OperationRef op;                 // current definition (cache steps, rfactor and inlining rewrite it)
  std::shared_ptr<const Reads> reads;  // reads of op
  IdVector<IteratorId, Iterator> iterators;  // roots first (spatial then reduce), then created ones
  std::vector<Relation> relations;           // in the order of creation
  std::vector<IteratorId> leaves;            // outer to inner
  AttachKind attach = AttachKind::kRoot;
  StageId attach_stage;        // kAt: the stage that it is attached to
  IteratorId attach_iterator;  // kAt: a leaf of that stage
  int64_t auto_unroll_max_step = 0;
  // Position of the reduction's init: before this leaf; none = before the outermost reduce leaf.
  IteratorId init_at;
  ir::MemoryScope scope = ir::MemoryScope::kGlobal;
  std::optional<Layout> layout;  // storage layout of the stage's output (constants and intermediates)
  // For a constant that is computed ahead of time from a constant of the workload: the computation.
  // Its only placeholder is that constant, its only output this stage's tensor.
  std::shared_ptr<const ir::Workload> transform;
  // {factor, offset} in elements of the innermost-but-one stride
  std::optional<std::pair<int64_t, int64_t>> storage_align;
  IteratorId storage_align_iterator;  // the root axis whose stride is aligned

  static Stage create(ir::OperationRef op);  // root axes as leaves, computed at root, scope of the output
  void set_op(ir::OperationRef new_op);      // replaces op and reads, nothing else
  bool is_placeholder() const { return op->is_placeholder(); }
  size_t num_roots() const { return op->spatial.size() + op->reduce.size(); }
  IteratorId root(size_t axis) const { return IteratorId(axis); }  // spatial axes, then reduce
  std::optional<size_t> leaf_position(IteratorId iterator) const;  // none if it is no leaf
  bool is_attached_at(StageId stage) const { return attach == AttachKind::kAt && attach_stage == stage; }
  bool is_attached_at(StageId stage, IteratorId leaf) const {
    return is_attached_at(stage) && attach_iterator == leaf;
  }
  bool reads_from(const Stage& producer) const;
};

struct Schedule {
  IdVector<StageId, Stage> stages;  // producers before consumers, placeholders included
  std::vector<ir::Buffer> outputs;  // the workload's outputs (cache_write keeps them)

  static Schedule create(const ir::Workload& workload);
  std::optional<StageId> stage_named(std::string_view name) const;
  // Returns the stages that read the output of stage s in non-inlined definitions, ascending.
  std::vector<StageId> consumers_of(StageId s) const;
  // Returns the stage whose current definition has this output buffer, or none.
  StageId producer_of(const ir::BufferNode* buffer) const;
  bool is_output(StageId s) const;
};

// Constant loop extents and the region of each root axis, after bound inference.
struct StageBounds {
  IdVector<IteratorId, int64_t> extents;
  // By root axis: the first computed index, as an expression over the loop variables of enclosing
  // stages (index 0 in the loops inside), and the number of computed indices. Root stages have {0,
  // axis extent}.
  std::vector<ir::Expr> root_min;
  std::vector<int64_t> root_extent;
  // By root axis: nonzero if the region may leave [0, axis extent) for some iteration outside, e.g.
  // at the tail of a consumer's split or at the border of a padded read. Such points are never read
  // and must not be computed.
  std::vector<uint8_t> root_may_leave;
};
struct Bounds {
  IdVector<StageId, StageBounds> stages;  // empty for placeholders and inlined stages
  // Variables that root_min refers to; defined for leaves only. Loops of extent 1 do not occur in
  // root_min.
  IdVector<StageId, IdVector<IteratorId, ir::Var>> loop_vars;
};
// Infers the extents of all loops, consumers first. The region that an attached stage must compute
// is the bounding box of all reads inside its attach point, with a constant extent. A dimension
// whose index cannot be bounded (data dependent) is computed in full. If GPU threads around the
// attach point share the stage's memory, the region covers all of them (TVM: NeedRelax). An
// attached stage's own splits and fuses apply to its smaller root extents. The error names the
// stage that is not well-formed.
Result<Bounds> infer_bounds(const Schedule& schedule);

}  // namespace tensorsmith::sched

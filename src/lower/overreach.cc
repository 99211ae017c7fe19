#include <algorithm>
#include <utility>

#include "ir/analysis.h"
#include "lower/nest.h"

namespace tensorsmith::lower {

namespace {

// Returns one past the largest index that the layout has room for in a dimension; elements beyond
// the tensor are zero. A digit that holds all indices of the tensor is emitted without a remainder
// (NestBuilder::physical), so indices must stay below what this digit holds, even if another digit
// could represent more.
int64_t capacity(const sched::Layout& layout, size_t dim, int64_t extent) {
  int64_t result = 0;
  for (const sched::LayoutDim& digit : layout) {
    const int64_t holds = digit.divisor * digit.extent;
    if (std::cmp_equal(digit.dim, dim) && holds >= extent)
      result = result == 0 ? holds : std::min(result, holds);
  }
  return std::max(result, extent);
}

bool within(const ir::Interval& r, int64_t extent) { return r.min >= 0 && r.max < extent; }

}  // namespace

int64_t NestBuilder::round_to_lanes(StageId s, size_t axis, int64_t needed) const {
  const sched::Stage& stage = schedule_.stages[s];
  IteratorId leaf = stage.root(axis);
  while (const sched::Relation* made_into = infos_[s].made_into[leaf]) {
    const auto* split = std::get_if<sched::SplitRelation>(made_into);
    if (split == nullptr) return needed;
    leaf = split->children.back();
  }
  if (stage.iterators[leaf].annotation != sched::Annotation::kVectorize) return needed;
  const int64_t lanes = bounds_.stages[s].extents[leaf];
  return (needed + lanes - 1) / lanes * lanes;
}

bool NestBuilder::contains_shared(StageId s) const {
  if (sched::memory_scope(schedule_, s) == ir::MemoryScope::kShared) return true;
  for (const StageId other : schedule_.stages.ids())
    if (schedule_.stages[other].is_attached_at(s) && contains_shared(other)) return true;
  return false;
}

ir::Expr NestBuilder::filled(StageId s, const ir::Expr& body) const {
  const ir::Operation& op = *schedule_.stages[s].op;
  ir::Expr inside;
  for (size_t a = 0; a < op.spatial.size(); ++a) {
    if (bounds_.stages[s].root_may_leave[a] == 0) continue;
    const ir::Expr index = op.spatial[a].var;
    const ir::Expr here = index >= ir::Expr(0) && index < ir::Expr(op.spatial[a].extent);
    inside = inside.defined() ? inside && here : here;
  }
  return inside.defined() ? ir::select(inside, body, ir::make_const(body.dtype(), 0)) : body;
}

// Example: a tile of 16 of 40 output channels. All accumulators of the last tile may be computed if
// the weights are packed by 16, which pads them with zeros; only the first 8 are stored.
std::vector<char> NestBuilder::overreach_candidates(StageId s) const {
  const sched::Stage& stage = schedule_.stages[s];
  std::vector<char> axes(stage.op->spatial.size(), 0);
  if (stage.attach != sched::AttachKind::kAt) return axes;
  if (sched::fills_region(schedule_, s)) {
    const std::vector<uint8_t>& may_leave = bounds_.stages[s].root_may_leave;
    axes.assign(may_leave.begin(), may_leave.begin() + axes.size());
    return axes;
  }
  for (size_t a = 0; a < axes.size(); ++a) {
    const Index& min = root_min_[s][a];
    if (bounds_.stages[s].root_may_leave[a] == 0 || arena_.range(min).min < 0) continue;
    const int64_t needed = axis_extent(s, a) - min.constant;
    // If the number of values is constant, loops are cut; only vectors are better run in full.
    axes[a] = !min.is_constant() || round_to_lanes(s, a, needed) != needed ? 1 : 0;
  }
  for (const sched::Relation& relation : stage.relations) {
    const auto* split = std::get_if<sched::SplitRelation>(&relation);
    if (split != nullptr &&
        sched::may_overrun(stage, *split, bounds_.stages[s].extents, bounds_.stages[s].root_may_leave))
      axes[split->parent.place()] = 1;
  }
  return axes;
}

void NestBuilder::check_overreach(const ir::Load& load, const StoragePlan& plan,
                                  const std::vector<Index>& logical) {
  if (sched::fills_region(schedule_, writing_)) return;  // it reads only within the tensor
  Overreach& over = overreach_[writing_];
  const std::vector<ir::Axis>& axes = schedule_.stages[writing_].op->spatial;
  for (size_t a = 0; a < over.axes.size(); ++a) {
    if (over.axes[a] == 0 || over.failed[a] != 0) continue;
    for (size_t d = 0; d < logical.size(); ++d) {
      if (!ir::uses_var(load.indices[d], axes[a].var)) continue;
      const int64_t extent = load.buffer->shape[d];
      const ir::Interval r = arena_.range(logical[d]);
      bool there = within(r, extent);
      const StageId producer = plan.stage;
      if (!plan.shrunk) {
        if (plan.layout != nullptr && schedule_.stages[producer].is_placeholder()) {
          there = within(r, capacity(*plan.layout, d, extent));
        }
      } else if (!there) {
        const ir::Interval local = arena_.range(logical[d] - root_min_[producer][d]);
        there =
            overreach_[producer].partial[d] == 0 && within(local, bounds_.stages[producer].root_extent[d]);
      }
      if (!there) over.failed[a] = 1;
    }
  }
}

}  // namespace tensorsmith::lower

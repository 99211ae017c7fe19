// Bound inference. Readers are processed before producers: each stage's loop extents follow from
// its region, and each attached stage's region follows from the reads inside its attach point.
#include <algorithm>
#include <ranges>
#include <span>

#include "ir/affine_visitor.h"
#include "sched/regions.h"
#include "sched/relations.h"

namespace tensorsmith::sched {

namespace {

// Returns whether the iterations of an enclosing loop with this annotation share a stage's memory,
// so that one copy must serve all of them.
bool shared_by(Annotation annotation, ir::MemoryScope scope) {
  if (is_block(annotation)) return scope == ir::MemoryScope::kGlobal;
  if (is_thread(annotation)) return scope != ir::MemoryScope::kLocal;
  return false;
}

// Elements outside the tensor are never read, so a range that is known to leave it can be clipped.
SymRange clip(SymRange range, int64_t extent) {
  if (range.width >= extent) return SymArena::full(extent);
  if (!range.min.is_constant()) return range;
  const int64_t low = std::clamp<int64_t>(range.min.constant, 0, extent - 1);
  const int64_t high = std::clamp<int64_t>(range.min.constant + range.width - 1, 0, extent - 1);
  return {SymArena::constant(low), high - low + 1};
}

bool is_computed(const Stage& stage) {
  return !stage.is_placeholder() && stage.attach != AttachKind::kInlined;
}

}  // namespace

Status RegionInference::run(const Schedule& schedule) {
  schedule_ = &schedule;
  arena_.clear();
  const size_t n = schedule.stages.size();
  regions_.resize(n);
  loops_.resize(n);
  for (const StageId s : std::views::reverse(schedule.stages.ids())) {
    const Stage& stage = schedule.stages[s];
    StageRegion& out = regions_[s];
    out.extents.clear();
    out.root_extent.clear();
    out.root_min.clear();
    out.root_may_leave.clear();
    loops_[s].clear();
    if (!is_computed(stage)) continue;
    TS_RETURN_IF_ERROR(infer_region(s));
    out.extents.assign(out.root_extent.begin(), out.root_extent.end());
    pass_down_extents(stage, out.extents);
    make_loops(s);
  }
  return {};
}

Status RegionInference::infer_region(StageId s) {
  const Stage& stage = schedule_->stages[s];
  StageRegion& out = regions_[s];
  const size_t roots = stage.num_roots();
  out.root_min.assign(roots, SymArena::constant(0));
  out.root_extent.reserve(roots);
  for (const ir::Axis& axis : stage.op->spatial) out.root_extent.push_back(axis.extent);
  for (const ir::Axis& axis : stage.op->reduce) out.root_extent.push_back(axis.extent);
  out.root_may_leave.assign(roots, 0);
  if (stage.attach == AttachKind::kRoot) return {};
  TS_RETURN_IF_ERROR(mark_inside(s));

  const size_t rank = stage.op->spatial.size();
  fills_region_ = fills_region(*schedule_, s);
  region_.assign(rank, SymRange{SymArena::constant(0), 0});
  seen_.assign(rank, 0);
  bool read = false;
  for (const StageId r : schedule_->stages.ids_after(s)) {
    const Stage& reader = schedule_->stages[r];
    if (reader.attach == AttachKind::kInlined) continue;
    bool axes_known = false;
    for (const Reads::Tensor& tensor : reader.reads->tensors()) {
      const auto& outs = stage.op->outputs;
      if (std::none_of(outs.begin(), outs.end(),
                       [&](const ir::Buffer& written) { return written.get() == tensor.buffer; }))
        continue;
      if (!axes_known) {
        TS_RETURN_IF_ERROR(check_in_scope(s, r));
        pass_up(r);
        axes_known = true;
      }
      // Each different index is processed once: repeated reads do not enlarge the region.
      for (const Reads::Use& use : tensor.uses) take_read(stage, reader, use);
      read = true;
    }
  }
  if (!read) return error(s, "is attached but no stage reads it; compute it at root");
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = stage.op->spatial[d].extent;
    const SymRange& range = region_[d];
    out.root_min[d] = range.min;
    out.root_extent[d] = range.width;
    out.root_may_leave[d] =
        arena_.tight_lowest(range.min) < 0 || arena_.tight_highest(range.min) + range.width > extent ? 1 : 0;
  }
  return {};
}

// Extends the region of the stage's dimension by the range of the reader's index; axes_ must be
// set.
void RegionInference::take_read(const Stage& stage, const Stage& reader, const Reads::Use& use) {
  const size_t d = use.dim;
  const int64_t extent = stage.op->spatial[d].extent;
  arena_.clear_overflow();
  SymRange range = SymArena::full(extent);
  const Reads::Index& index = reader.reads->indices()[use.index];
  // A tile that is filled (fills_region) also holds elements outside the tensor, so its region is not
  // clipped. But a region that is at least twice as long as the tensor is clipped: its excess comes from
  // threads that have nothing to do.
  const auto needed = [&](const SymRange& value) {
    return fills_region_ && value.width < 2 * extent ? value : clip(value, extent);
  };
  if (SymRange value; eval(reader, index, &value) && !arena_.overflowed()) range = needed(value);
  region_[d] = seen_[d] != 0 ? needed(arena_.unite(region_[d], range)) : range;
  seen_[d] = 1;
  if (arena_.overflowed()) region_[d] = SymArena::full(extent);
}

// Sets inside_[loop] to 1 if one region of stage s serves all iterations of the loop, and to 0 if each
// iteration has a region of its own. The latter are the loops around the stage's attach point, except for
// those whose iterations share the stage's memory.
Status RegionInference::mark_inside(StageId s) {
  const Stage& stage = schedule_->stages[s];
  const ir::MemoryScope scope = memory_scope(*schedule_, s);
  inside_.assign(arena_.loops().size(), 1);
  StageId at = stage.attach_stage;
  IteratorId iterator = stage.attach_iterator;
  while (at.valid()) {
    if (!schedule_->stages.has(at) || at <= s)
      return error(s, "is attached to a stage that does not follow it");
    const Stage& target = schedule_->stages[at];
    const auto position = target.leaf_position(iterator);
    if (target.attach == AttachKind::kInlined || !position)
      return error(s, "is attached to a loop that does not exist");
    for (const IteratorId leaf : std::span(target.leaves).first(*position + 1)) {
      const SymLoopId loop = loops_[at][leaf].id;
      if (loop.valid() && !shared_by(target.iterators[leaf].annotation, scope)) inside_[loop] = 0;
    }
    if (target.attach != AttachKind::kAt) break;
    iterator = target.attach_iterator;
    at = target.attach_stage;
  }
  return {};
}

Status RegionInference::check_in_scope(StageId s, StageId reader) const {
  const Stage& stage = schedule_->stages[s];
  const Stage& target = schedule_->stages[stage.attach_stage];
  const auto position = target.leaf_position(stage.attach_iterator);
  const Stage* at = &schedule_->stages[reader];
  if (at == &target) return {};
  while (at->attach == AttachKind::kAt) {
    const Stage* next = &schedule_->stages[at->attach_stage];
    if (next == &target) {
      if (next->leaf_position(at->attach_iterator) >= position) return {};
      break;
    }
    at = next;
  }
  return error(
      s, "is read by stage '" + schedule_->stages[reader].op->name + "' outside the loop it is attached to");
}

Error RegionInference::error(StageId s, std::string reason) const {
  return {ErrorCode::kIllegal, "stage '" + schedule_->stages[s].op->name + "'", std::move(reason)};
}

void RegionInference::make_loops(StageId s) {
  const Stage& stage = schedule_->stages[s];
  const IdVector<IteratorId, int64_t>& extents = regions_[s].extents;
  loops_[s].resize(stage.iterators.size());
  for (const IteratorId leaf : stage.leaves) {
    if (extents[leaf] <= 1) continue;
    Loop& loop = loops_[s][leaf];
    loop.id = arena_.loops().next();
    loop.value = arena_.loop({s, leaf}, extents[leaf]);
  }
}

// Sets axes_[iterator] to the values of reader r's iterators while the loops in inside_ run. The
// first ones are those of its root axes, to which root_min is added.
void RegionInference::pass_up(StageId r) {
  const Stage& stage = schedule_->stages[r];
  const IdVector<IteratorId, int64_t>& extents = regions_[r].extents;
  axes_.assign(stage.iterators.size(), SymArena::point(SymArena::constant(0)));
  for (const IteratorId leaf : stage.leaves) {
    const Loop& loop = loops_[r][leaf];
    if (!loop.id.valid()) continue;
    // Loops created after inside_ was sized do not occur here: readers are processed before
    // producers.
    axes_[leaf] = inside_[loop.id] != 0 ? SymArena::full(extents[leaf]) : SymArena::point(loop.value);
  }
  for (auto it = stage.relations.rbegin(); it != stage.relations.rend(); ++it) {
    if (const auto* split = std::get_if<SplitRelation>(&*it)) {
      const IteratorId parent = split->parent;
      int64_t stride = 1;
      SymRange sum = axes_[split->children.back()];
      constexpr int64_t kMaxStride = int64_t{1} << 40;
      for (size_t k = split->children.size() - 1; k-- > 0;) {
        const int64_t inner = extents[split->children[k + 1]];
        // Only lengths that are bound to threads can be so large: others are clamped to the extent.
        if (inner > kMaxStride / std::max<int64_t>(stride, 1)) {
          sum = SymArena::full(extents[parent]);
          break;
        }
        stride *= inner;
        SymRange tiles = arena_.scale(axes_[split->children[k]], stride);
        if (k == 0 && shifts_last_tile(stage, *split, extents, regions_[r].root_may_leave))
          tiles = arena_.minimum(tiles, SymArena::point(SymArena::constant(extents[parent] - stride)));
        sum = arena_.add(sum, tiles);
      }
      axes_[parent] = sum.width >= extents[parent] ? SymArena::full(extents[parent]) : sum;
    } else {
      const auto& fuse = std::get<FuseRelation>(*it);
      SymRange rest = axes_[fuse.child];
      for (size_t k = fuse.parents.size(); k-- > 0;) {
        const IteratorId parent = fuse.parents[k];
        if (extents[parent] <= 1 && k > 0) continue;
        axes_[parent] = k == 0 ? rest : arena_.floormod(rest, extents[parent]);
        if (axes_[parent].width >= extents[parent]) axes_[parent] = SymArena::full(extents[parent]);
        if (k > 0) rest = arena_.floordiv(rest, extents[parent]);
      }
    }
  }
  for (size_t a = 0; a < regions_[r].root_min.size(); ++a) {
    const Sym& min = regions_[r].root_min[a];
    SymRange& axis = axes_[stage.root(a)];
    axis.width = std::max<int64_t>(axis.width, 1);
    if (min.is_constant()) {
      axis.min.constant += min.constant;
    } else {
      axis = arena_.add(axis, arena_.relax(min, inside_));
    }
  }
}

// Evaluates an index expression of the reader, whose axes_ are set. After an expression that nothing is
// known about, known() is false.
class RegionInference::Reader : public ir::AffineVisitor<Reader, SymRange> {
 public:
  Reader(RegionInference& inference, const ir::Operation& op) : inference_(inference), op_(op) {}

  bool known() const { return known_; }
  SymArena& algebra() { return inference_.arena_; }
  static bool left_first(ir::BinaryOp) { return true; }
  SymRange operand(const ir::Expr& e) {
    if (!known_) return unknown();
    const SymRange range = evaluate(e);
    return inference_.fits(e.dtype(), range) ? range : unknown();
  }
  SymRange literal(int64_t value, const ir::Expr&) {
    return value < ir::kIndexLimit && value > -ir::kIndexLimit ? SymArena::point(SymArena::constant(value))
                                                               : unknown();
  }
  SymRange variable(const ir::VarRef& n, const ir::Expr&) {
    const auto axis = axis_number(op_, n.var);
    return axis ? inference_.axes_[IteratorId(*axis)] : unknown();
  }
  static std::optional<int64_t> constant_of(const SymRange& range) {
    return range.min.is_constant() && range.width == 1 ? std::optional(range.min.constant) : std::nullopt;
  }
  bool never_negative(const SymRange& range) const { return inference_.arena_.lowest(range.min) >= 0; }
  SymRange select(const ir::Select& n, const ir::Expr&) {
    const SymRange a = operand(n.a), b = operand(n.b);
    return known_ ? algebra().unite(a, b) : unknown();
  }
  SymRange cast(const ir::Cast& n, const ir::Expr&) {
    return ir::is_int(n.a.dtype()) ? operand(n.a) : unknown();
  }
  SymRange other(const ir::Expr&) { return unknown(); }

 private:
  SymRange unknown() {
    known_ = false;
    return SymArena::point(SymArena::constant(0));
  }

  RegionInference& inference_;
  const ir::Operation& op_;
  bool known_ = true;
};

// Sums of axes are evaluated from their form in Reads; other expressions are traversed.
bool RegionInference::eval(const Stage& reader, const Reads::Index& index, SymRange* out) {
  if (!index.sum) {
    Reader expression(*this, *reader.op);
    *out = expression.operand(*index.expr);
    return expression.known();
  }
  *out = SymArena::point(SymArena::constant(index.sum->constant));
  for (const auto& [axis, factor] : index.sum->terms)
    *out = arena_.add(*out, arena_.scale(axes_[reader.root(axis)], factor));
  return true;
}

// Returns whether arithmetic in the dtype gives these values without wrapping.
bool RegionInference::fits(ir::DType dtype, const SymRange& range) const {
  if (arena_.overflowed()) return false;
  if (dtype == ir::DType::kI64) return true;
  if (!ir::is_int(dtype)) return false;
  const int bits = ir::bits_of(dtype);
  const int64_t low = ir::is_signed_int(dtype) ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t high =
      bits == 64 ? int64_t{1} << 60 : (int64_t{1} << (ir::is_signed_int(dtype) ? bits - 1 : bits)) - 1;
  return arena_.lowest(range.min) >= low && arena_.highest(range.min) + range.width - 1 <= high;
}

Result<Bounds> infer_bounds(const Schedule& schedule) {
  RegionInference inference;
  TS_RETURN_IF_ERROR(inference.run(schedule));
  const size_t n = schedule.stages.size();
  Bounds bounds;
  bounds.stages.resize(n);
  bounds.loop_vars.resize(n);
  for (const StageId s : schedule.stages.ids()) {
    const Stage& stage = schedule.stages[s];
    if (!is_computed(stage)) continue;
    bounds.loop_vars[s].resize(stage.iterators.size());
    for (const IteratorId leaf : stage.leaves)
      bounds.loop_vars[s][leaf] = ir::Var(stage.iterators[leaf].name);
  }
  // Minima become expressions only now, when all variables exist.
  const ir::Expr zero{0};
  for (const StageId s : schedule.stages.ids()) {
    const StageRegion& region = inference.stage(s);
    StageBounds& out = bounds.stages[s];
    out.extents = region.extents;
    out.root_extent = region.root_extent;
    out.root_may_leave = region.root_may_leave;
    out.root_min.reserve(region.root_min.size());
    for (const Sym& min : region.root_min)
      out.root_min.push_back(
          min.is_constant() && min.constant == 0 ? zero : inference.arena().to_expr(min, bounds.loop_vars));
  }
  return bounds;
}

}  // namespace tensorsmith::sched

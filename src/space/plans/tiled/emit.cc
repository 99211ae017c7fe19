// Steps of a tiled plan.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/floor_div.h"
#include "space/plan_steps.h"
#include "space/plans/tiled/tiled_plan.h"

namespace tensorsmith::space {

namespace {

// Splits a loop into lengths.size() + 1 levels; levels of extent 1 make no loop (kNoLoop).
std::vector<LoopId> split_levels(TraceMaker& maker, StageId stage, LoopId loop, int64_t extent,
                                 const std::vector<int64_t>& lengths, sched::TailPolicy tail) {
  int64_t inner = 1;
  for (int64_t l : lengths) inner *= l;
  std::vector<int64_t> full{ceil_div(extent, inner)};
  full.insert(full.end(), lengths.begin(), lengths.end());
  std::vector<LoopId> result(full.size(), kNoLoop);
  std::vector<size_t> kept;
  for (size_t i = 0; i < full.size(); ++i)
    if (full[i] > 1) kept.push_back(i);
  if (kept.empty()) kept.push_back(full.size() - 1);
  std::vector<int64_t> factors;
  for (size_t i = 1; i < kept.size(); ++i) factors.push_back(full[kept[i]]);
  const auto made = factors.empty() ? std::vector<LoopId>{loop} : maker.split(stage, loop, factors, tail);
  for (size_t i = 0; i < kept.size(); ++i) result[kept[i]] = made[i];
  return result;
}

void append(std::vector<LoopId>& list, LoopId loop) {
  if (loop != kNoLoop) list.push_back(loop);
}

}  // namespace

void TiledPlan::emit(TraceMaker& maker, Decisions d) const {
  const Choice c = decode(d);
  for (size_t p = 0; p < pads_.size(); ++p)
    if (c.pads[p] == PadLocation::kInline) maker.compute_inline(pads_[p]);
  for (const auto& operand : operands_)
    if (c.pack && operand.packable) maker.pack(operand.read.producer, packed_layout(c, operand));
  const bool direct = self_ && !c.cache_write;
  StageId anchor = anchor_;
  if (self_ && c.cache_write) anchor = maker.cache_write(output_, ir::MemoryScope::kLocal);
  for (const auto& operand : operands_) {
    if ((c.copied & operand.bit) == 0) continue;
    const StageId source = operand.read.producer;
    const auto& info = context_.stage(source);
    const StageId copy = maker.cache_read(source, ir::MemoryScope::kGlobal, {anchor}, info.extents.size());
    const sched::Layout layout = packed_layout(c, operand);
    int64_t lanes = context_.machine.lanes(info.element_bytes);
    // Vectors that end where the innermost digit does are contiguous on both sides.
    if (!layout.empty() && std::cmp_equal(layout.back().dim, info.contiguous_axis.place())) {
      const int64_t whole = vector_lanes(layout.back().extent, lanes);
      if (whole * 4 >= lanes) lanes = whole;
    }
    maker.pack(copy, layout);
    emit_copy_stage(maker, copy, info.extents, info.contiguous_axis, lanes, context_.threads() > 1, c.tail);
  }
  if (direct) {
    emit_direct(maker, c, output_);
  } else {
    emit_attached(maker, c, output_, anchor);
  }
}

// Vectorizes the innermost loop of the vector axis, unrolls the other inner loops, and sets the
// loop order outer, reduce, inner. `inner`: by spatial axis (kNoLoop if there is none).
void TiledPlan::emit_register_tile(TraceMaker& maker, const Choice& c, StageId stage,
                                   const std::vector<LoopId>& outer, const std::vector<LoopId>& reduce,
                                   const IdVector<AxisId, LoopId>& inner) const {
  std::vector<LoopId> tile;
  for (const AxisId a : live_)
    if (a != c.vector_axis) append(tile, inner[a]);
  LoopId vector_loop = kNoLoop;
  if (const AxisId v = c.vector_axis; v.valid() && inner[v] != kNoLoop) {
    vector_loop = inner[v];
    if (c.lanes > 1 && c.lanes < c.t3[v]) {
      const auto made = maker.split(stage, vector_loop, {c.lanes}, c.tail);
      tile.push_back(made[0]);
      vector_loop = made[1];
    }
    if (c.lanes == 1) {
      tile.push_back(vector_loop);
      vector_loop = kNoLoop;
    }
  }
  // Loops of extent 1 (no decision) stay outermost.
  std::vector<LoopId> order;
  append_others(maker, stage, {&outer, &reduce, &tile}, vector_loop, order);
  order.insert(order.end(), outer.begin(), outer.end());
  order.insert(order.end(), reduce.begin(), reduce.end());
  order.insert(order.end(), tile.begin(), tile.end());
  append(order, vector_loop);
  maker.reorder(stage, order);
  for (LoopId loop : tile) maker.annotate(stage, loop, sched::Annotation::kUnroll);
  if (vector_loop != kNoLoop) maker.annotate(stage, vector_loop, sched::Annotation::kVectorize);
}

// Makes the loops of the output stage: outer tiles, tiles, and the write of one region.
TiledPlan::OutputLoops TiledPlan::emit_output(TraceMaker& maker, const Choice& c, StageId output) const {
  const auto loops = maker.axis_loops(output);
  IdVector<AxisId, LoopId> o0(info_.num_spatial), o1(info_.num_spatial), o2(info_.num_spatial);
  for (const AxisId a : live_) {
    const LoopId loop = loops[output_axis_[a]];
    const std::vector<int64_t> lengths = c.attach_outer ? std::vector<int64_t>{1, c.tile(a)}
                                                        : std::vector<int64_t>{c.t1[a], c.t2[a] * c.t3[a]};
    const auto made = split_levels(maker, output, loop, extent(a), lengths, c.tail);
    o0[a] = made[0];
    o1[a] = made[1];
    o2[a] = made[2];
  }
  std::vector<LoopId> outer, middle, write;
  for (const AxisId a : c.outer_order) append(outer, o0[a]);
  for (const AxisId a : live_) append(middle, o1[a]);
  LoopId write_vector = kNoLoop;
  double write_points = 1;
  const int64_t out_lanes = context_.machine.lanes(context_.stage(output_).element_bytes);
  for (const AxisId a : live_) {
    if (o2[a] == kNoLoop) continue;
    if (a != contiguous_) {
      write.push_back(o2[a]);
      write_points *= c.region[a];
      continue;
    }
    write_vector = o2[a];
    if (int64_t lanes = vector_lanes(c.region[a], out_lanes); lanes < c.region[a]) {
      // A whole number of vectors where possible.
      if (c.region[a] > out_lanes && lanes * 2 <= out_lanes) lanes = out_lanes;
      const auto made = maker.split(output, write_vector, {lanes}, c.tail);
      write.push_back(made[0]);
      write_vector = made[1];
      write_points *= ceil_div(c.region[a], lanes);
    }
  }
  std::vector<LoopId> ones, order = outer;
  append_others(maker, output, {&outer, &middle, &write}, write_vector, ones);
  // Axes of extent 1 stay inside the outer tiles, where they disappear.
  order.insert(order.end(), middle.begin(), middle.end());
  order.insert(order.end(), ones.begin(), ones.end());
  order.insert(order.end(), write.begin(), write.end());
  append(order, write_vector);
  maker.reorder(output, order);
  if (write_points <= 64)
    for (LoopId loop : write) maker.annotate(output, loop, sched::Annotation::kUnroll);
  if (write_vector != kNoLoop) maker.annotate(output, write_vector, sched::Annotation::kVectorize);
  if (const size_t count = std::min(c.parallel, outer.size()); count > 0) {
    const LoopId loop = parallelize(maker, output, outer, count);
    const auto rest = std::span(outer).subspan(count);
    outer = std::vector<LoopId>(rest.begin(), rest.end());
    outer.insert(outer.begin(), loop);
  }
  // Even with a single tile, attaching to a loop of extent 1 makes the anchor's storage that of the
  // tile.
  LoopId outer_last = outer.empty() ? kNoLoop : outer.back();
  if (outer.empty() && middle.empty() && !ones.empty()) outer_last = ones.back();
  return {outer_last, middle.empty() ? outer_last : middle.back()};
}

// Makes the loops of the anchor: outer reduction, tiles, inner reduction, and register tile.
LoopId TiledPlan::emit_anchor(TraceMaker& maker, const Choice& c, StageId anchor) const {
  const auto loops = maker.axis_loops(anchor);
  std::vector<LoopId> a2;
  IdVector<AxisId, LoopId> inner(info_.num_spatial);
  for (const AxisId a : live_) {
    const auto made = split_levels(maker, anchor, loops[a], c.region[a], {c.register_length(a)}, c.tail);
    append(a2, made[0]);
    inner[a] = made[1];
  }
  std::vector<LoopId> r0, r1;
  for (const AxisId r : c.reduce_order) {
    const auto made = split_levels(maker, anchor, loops[r], extent(r), {c.r1[r]}, c.tail);
    append(r0, made[0]);
    append(r1, made[1]);
  }
  // Without tile loops between them, both reduction levels are one run of loops.
  std::vector<LoopId> before = r0, reduce = r1;
  before.insert(before.end(), a2.begin(), a2.end());
  if (a2.empty()) {
    reduce.insert(reduce.begin(), r0.begin(), r0.end());
    before.clear();
  }
  emit_register_tile(maker, c, anchor, before, reduce, inner);
  // Unrolls the reduction from the inside outwards while the product stays within the limit.
  if (c.unroll > 1) {
    int64_t product = 1;
    for (size_t i = c.reduce_order.size(); i-- > 0;) {
      const int64_t length = inner_steps(c, c.reduce_order[i]);
      if (length == 1) continue;
      product *= length;
      if (product > c.unroll) break;
      const LoopId loop = reduce[reduce.size() - 1];
      if (std::find(maker.leaves(anchor).begin(), maker.leaves(anchor).end(), loop) ==
          maker.leaves(anchor).end())
        break;
      maker.annotate(anchor, loop, sched::Annotation::kUnroll);
      reduce.pop_back();
      if (reduce.empty()) break;
    }
  }
  return r0.empty() ? kNoLoop : r0.back();
}

void TiledPlan::emit_attached(TraceMaker& maker, const Choice& c, StageId output, StageId anchor) const {
  const auto [outer_last, attach] = emit_output(maker, c, output);
  const LoopId reduce_loop = emit_anchor(maker, c, anchor);
  if (attach != kNoLoop) maker.compute_at(anchor, output, attach);
  emit_pads(maker, c, output, outer_last, anchor, reduce_loop);
}

void TiledPlan::emit_direct(TraceMaker& maker, const Choice& c, StageId stage) const {
  const auto loops = maker.axis_loops(stage);
  std::vector<LoopId> s1, s2;
  IdVector<AxisId, LoopId> s0(info_.num_spatial), inner(info_.num_spatial);
  for (const AxisId a : live_) {
    const auto made = split_levels(maker, stage, loops[a], extent(a), {c.t1[a], c.t2[a], c.t3[a]}, c.tail);
    s0[a] = made[0];
    append(s1, made[1]);
    append(s2, made[2]);
    inner[a] = made[3];
  }
  std::vector<LoopId> outer;
  for (const AxisId a : c.outer_order) append(outer, s0[a]);
  std::vector<LoopId> r0, r1;
  for (const AxisId r : c.reduce_order) {
    const auto made = split_levels(maker, stage, loops[r], extent(r), {c.r1[r]}, c.tail);
    append(r0, made[0]);
    append(r1, made[1]);
  }
  std::vector<LoopId> before = outer;
  before.insert(before.end(), s1.begin(), s1.end());
  before.insert(before.end(), r0.begin(), r0.end());
  before.insert(before.end(), s2.begin(), s2.end());
  emit_register_tile(maker, c, stage, before, r1, inner);
  const size_t count = std::min(c.parallel, outer.size());
  LoopId outer_last = outer.empty() ? kNoLoop : outer.back();
  // Axes of extent 1 are before the outer tiles, so the tiles are consecutive.
  const LoopId fused = parallelize(maker, stage, outer, count);
  if (count > 0 && count == outer.size()) outer_last = fused;
  emit_pads(maker, c, stage, outer_last, stage, r0.empty() ? kNoLoop : r0.back());
}

void TiledPlan::emit_pads(TraceMaker& maker, const Choice& c, StageId output, LoopId output_loop,
                          StageId anchor, LoopId reduce_loop) const {
  for (size_t p = 0; p < pads_.size(); ++p) {
    PadLocation where = c.pads[p];
    if (where == PadLocation::kInline) continue;
    if (where == PadLocation::kReduceTile && reduce_loop == kNoLoop) where = PadLocation::kTile;
    if (where == PadLocation::kTile && output_loop == kNoLoop) where = PadLocation::kRoot;
    const auto& pad = context_.stage(pads_[p]);
    const int64_t lanes = context_.machine.lanes(pad.element_bytes);
    if (where == PadLocation::kRoot) {
      emit_copy_stage(maker, pads_[p], pad.extents, pad.contiguous_axis, lanes, context_.threads() > 1,
                      c.tail);
      continue;
    }
    // Rows of the region that one tile reads.
    AxisRanges ranges(info_.num_axes());
    for (const AxisId a : info_.spatial_axes())
      ranges[a] = std::min(extent(a), where == PadLocation::kTile ? c.tile(a) : c.region[a]);
    for (const AxisId r : info_.reduce_axes()) ranges[r] = where == PadLocation::kTile ? extent(r) : c.r1[r];
    Lengths extents = pad.extents;
    for (const auto& operand : operands_) {
      if (operand.pad != p) continue;
      const auto touched = footprint(operand.read, ranges);
      for (const AxisId d : extents.ids())
        extents[d] = std::min(extents[d], static_cast<int64_t>(touched[d]));
    }
    emit_copy_stage(maker, pads_[p], extents, pad.contiguous_axis, lanes, false, c.tail);
    if (where == PadLocation::kTile) {
      maker.compute_at(pads_[p], output, output_loop);
    } else {
      maker.compute_at(pads_[p], anchor, reduce_loop);
    }
  }
}

// Returns the digits of each index in the order of the loops over them, so that the register tile
// reads the packed tensor from front to back. Example, W[oc, ic, kh, kw] with 16 channels in the
// tile: {oc/16, ic, kh, kw, oc%16}. With rows that are kept together, A[m, k] with 14 rows in the
// tile and 16 points of k per step: {m/14, k/16, m%14, k%16}.
sched::Layout TiledPlan::packed_layout(const Choice& c, const Operand& operand) const {
  const auto& shape = context_.stage(operand.read.producer).extents;
  AxisMap dim_of(info_.num_axes());
  sched::Layout layout;
  for (const AxisId d : shape.ids()) {
    const AxisId axis = shape[d] > 1 ? operand.read.indices[d].single_axis() : AxisId();
    if (axis.valid() && extent(axis) > 1) {
      dim_of[axis] = d;
    } else {
      layout.push_back(layout_dim(d, 1, shape[d]));
    }
  }
  const auto add = [&](AxisId axis, int64_t divisor, int64_t length) {
    if (!dim_of[axis].valid() || length == 1) return;
    const sched::LayoutDim digit = layout_dim(dim_of[axis], divisor, length);
    if (!layout.empty() && layout.back().dim == digit.dim && layout.back().divisor == divisor * length) {
      layout.back().extent *= length;
      layout.back().divisor = divisor;
    } else {
      layout.push_back(digit);
    }
  };
  const auto region = [&](AxisId a) { return std::min(extent(a), c.region[a]); };
  for (const AxisId a : c.outer_order) add(a, region(a), ceil_div(extent(a), region(a)));
  // The tensor may have more steps of a reduction than the loops take.
  const auto steps = [&](AxisId r) { return dim_of[r].valid() ? shape[dim_of[r]] : 1; };
  const auto inner = [&](AxisId r) { return c.r1[r] < extent(r) ? c.r1[r] : steps(r); };
  for (const AxisId r : c.reduce_order) add(r, inner(r), ceil_div(steps(r), inner(r)));
  for (const AxisId a : live_) {
    const int64_t tile = std::min(c.t3[a], region(a));
    add(a, tile, ceil_div(region(a), tile));
  }
  const auto add_reduction = [&] {
    for (const AxisId r : c.reduce_order) add(r, 1, inner(r));
  };
  const bool rows = keeps_rows(c, operand);
  if (!rows) add_reduction();
  for (const AxisId a : live_)
    if (a != c.vector_axis) add(a, 1, std::min(c.t3[a], region(a)));
  if (rows) add_reduction();
  if (const AxisId v = c.vector_axis; v.valid()) add(v, 1, std::min(c.t3[v], region(v)));
  return layout;
}

}  // namespace tensorsmith::space

// Plans of reductions over a small sliding window (depthwise convolutions, pooling). The window is unrolled
// inside each vector of outputs, and so are the rows of a tile: then the loads that neighbouring rows have in
// common are shared, the border's masks are constants where a tile spans the image, and an output goes to
// memory straight from its accumulator:
//
//   parallel outer tiles / strips of vectors / rows / window / vector
#include <algorithm>
#include <cmath>

#include "space/plan.h"

namespace tensorsmith::space {

namespace {

using LoopId = TraceMaker::LoopId;
constexpr LoopId kNoLoop = -1;

// Larger windows are left to loops.
constexpr double kMaxWindow = 128;
// Window points in the code of one tile, what compile time grows with.
constexpr double kMaxUnrolled = 320;

class WindowPlan final : public Plan {
 public:
  WindowPlan(const PlanContext& context, int output, int anchor, std::vector<int> pads,
             std::vector<int> output_axis)
      : Plan(context),
        output_(output),
        anchor_(anchor),
        pads_(std::move(pads)),
        info_(context.stage(anchor)),
        output_axis_(std::move(output_axis)),
        reads_(effective_reads(context, anchor)),
        lanes_(context.machine.lanes(info_.element_bytes)) {
    const std::string name = context.op(anchor).name;
    const auto& out = context.stage(output);
    for (int a = 0; a < info_.num_spatial; ++a) {
      if (extent(a) <= 1) continue;
      live_.push_back(a);
      if (output_axis_[static_cast<size_t>(a)] == out.contiguous_axis) vector_axis_ = a;
    }
    std::sort(live_.begin(), live_.end(), [&](int x, int y) {
      return output_axis_[static_cast<size_t>(x)] < output_axis_[static_cast<size_t>(y)];
    });
    // Tiles of axes that windows slide along: only there neighbours have loads in common.
    tile_slot_.assign(static_cast<size_t>(info_.num_spatial), kNone);
    for (int a : live_)
      if (a != vector_axis_ && slides_along(a))
        tile_slot_[static_cast<size_t>(a)] =
            add_tile(name + ".tile." + context.axis_name(anchor, a), extent(a), 1, 1, 64);
    strip_slot_ = add_tile(name + ".strip." + context.axis_name(anchor, vector_axis_), extent(vector_axis_),
                           2, lanes_, lanes_);
    for (int pad : pads_)
      pad_slots_.push_back(
          add_category(context.op(pad).name + ".location", DecisionRole::kLocation, {3, 1, 1}));
    if (context.threads > 1) {
      std::vector<double> weights(live_.size() + 1, 1.0);
      weights[0] = 0.1;
      parallel_slot_ = add_category(name + ".parallel", DecisionRole::kParallel, weights);
    }
    tail_slot_ = add_category(name + ".tail", DecisionRole::kTail, {0.5, 0.5});
  }

  std::string describe() const override {
    std::string text = "window " + context_.op(anchor_).name;
    if (anchor_ != output_) text += " into " + context_.op(output_).name;
    for (int p : pads_) text += " with " + context_.op(p).name;
    return text;
  }

  void emit(TraceMaker& maker, Decisions d) const override {
    const auto tail = tail_of(d);
    for (size_t p = 0; p < pads_.size(); ++p)
      if (location(d, p) == PadLocation::kInline) maker.compute_inline(pads_[p]);
    const int anchor = anchor_ == output_ ? maker.cache_write(output_, ir::MemoryScope::kLocal) : anchor_;

    const auto loops = maker.leaves(output_);
    std::vector<LoopId> outer, rows, strips;
    LoopId vector_loop = kNoLoop;
    for (int a : live_) {
      const LoopId loop = loops[static_cast<size_t>(output_axis_[static_cast<size_t>(a)])];
      const int64_t e = extent(a);
      if (a != vector_axis_) {
        const int64_t t = tile(d, a);
        if (t == 1) {
          outer.push_back(loop);
        } else if (t == e) {
          rows.push_back(loop);
        } else {
          const auto made = maker.split(output_, loop, {t}, tail);
          outer.push_back(made[0]);
          rows.push_back(made[1]);
        }
        continue;
      }
      const int64_t v = width(d), n = strip(d);
      std::vector<LoopId> made{loop};
      if (n * v < e) {
        made = maker.split(output_, loop, n > 1 ? std::vector<int64_t>{n, v} : std::vector<int64_t>{v}, tail);
        outer.push_back(made.front());
        made.erase(made.begin());
      } else if (v < e) {
        made = maker.split(output_, loop, {v}, tail);
      }
      vector_loop = made.back();
      if (made.size() > 1) strips.push_back(made.front());
    }
    std::vector<LoopId> order = outer;
    for (LoopId loop : maker.leaves(output_)) {
      const auto in = [&](const std::vector<LoopId>& l) {
        return std::find(l.begin(), l.end(), loop) != l.end();
      };
      if (!in(outer) && !in(rows) && !in(strips) && loop != vector_loop) order.push_back(loop);
    }
    std::vector<LoopId> inner = strips;
    inner.insert(inner.end(), rows.begin(), rows.end());
    LoopId attach = !inner.empty() ? inner.back() : !order.empty() ? order.back() : kNoLoop;
    order.insert(order.end(), inner.begin(), inner.end());
    order.push_back(vector_loop);
    maker.reorder(output_, order);
    for (LoopId loop : inner) maker.annotate(output_, loop, sched::Annotation::kUnroll);
    if (width(d) > 1) maker.annotate(output_, vector_loop, sched::Annotation::kVectorize);
    LoopId outer_last = outer.empty() ? kNoLoop : outer.back();
    if (const size_t count = std::min(parallel(d), outer.size()); count > 0) {
      const std::vector<LoopId> fused(outer.begin(), outer.begin() + static_cast<std::ptrdiff_t>(count));
      const LoopId loop = maker.fuse(output_, fused);
      maker.annotate(output_, loop, sched::Annotation::kParallel);
      if (count == outer.size()) {
        if (attach == outer_last) attach = loop;
        outer_last = loop;
      }
    }

    // One vector of the reduction: window outside, lanes inside.
    const auto own = maker.leaves(anchor);
    const auto v = static_cast<size_t>(vector_axis_);
    order.clear();
    for (size_t i = 0; i < own.size(); ++i)
      if (i != v) order.push_back(own[i]);
    order.push_back(own[v]);
    maker.reorder(anchor, order);
    for (int a = info_.num_spatial; a < info_.num_axes(); ++a)
      if (extent(a) > 1) maker.annotate(anchor, own[static_cast<size_t>(a)], sched::Annotation::kUnroll);
    if (width(d) > 1) maker.annotate(anchor, own[v], sched::Annotation::kVectorize);
    if (attach != kNoLoop) maker.compute_at(anchor, output_, attach);
    emit_pads(maker, d, outer_last);
  }

  Status check(Decisions d) const override {
    const auto refuse = [&](std::string reason) {
      return Error{ErrorCode::kResourceExhausted, context_.op(anchor_).name, std::move(reason)};
    };
    double points = info_.reduce_points() * static_cast<double>(strip(d)), padded = 1;
    for (int a : live_) {
      const double e = static_cast<double>(extent(a)), t = static_cast<double>(tile_length(d, a));
      if (a != vector_axis_) points *= t;
      padded *= t * std::ceil(e / t) / e;
    }
    if (points > kMaxUnrolled) return refuse("too much unrolled code");
    if (padded > 2) return refuse("more than half of the tiles would be tail");
    return {};
  }

  void sample(Rng& rng, std::span<int64_t> d) const override {
    Plan::sample(rng, d);
    if (rng.bernoulli(0.15)) return;
    // Vectors that leave no tail, or full ones; one of them or the whole row; as many rows as the code may
    // have.
    const int64_t e = extent(vector_axis_);
    int64_t v = vector_lanes(e, lanes_);
    if (v * 2 <= std::min(e, lanes_) || rng.bernoulli(0.2)) v = std::min(e, lanes_);
    const int64_t whole = (e + v - 1) / v;
    const auto& slot = slots()[strip_slot_];
    const auto lengths = d.subspan(slot.offset, slot.width());
    lengths[1] = v;
    lengths[0] = rng.bernoulli(0.5) && e % v == 0 ? whole : 1;
    slot.tiles->fit(lengths, lengths);
    double room = kMaxUnrolled / info_.reduce_points() / static_cast<double>(lengths[0]);
    for (size_t i = live_.size(); i-- > 0;) {
      const auto slot_of = tile_slot_[static_cast<size_t>(live_[i])];
      if (slot_of == kNone) continue;
      const int64_t rows = extent(live_[i]);
      int64_t t = rng.uniform_int(1, std::max<int64_t>(1, std::min(rows, static_cast<int64_t>(room))));
      if (rng.bernoulli(0.7))
        while (rows % t != 0) --t;
      const auto own = d.subspan(slots()[slot_of].offset, 1);
      own[0] = t;
      slots()[slot_of].tiles->fit(own, own);
      room /= static_cast<double>(own[0]);
    }
  }

  double estimate(Decisions d) const override {
    const auto& m = context_.machine;
    double tiles = 1, vectors = static_cast<double>(strip(d));  // of one tile
    for (int a : live_) {
      const double e = static_cast<double>(extent(a)), t = static_cast<double>(tile_length(d, a));
      tiles *= std::ceil(e / t);
      if (a != vector_axis_) vectors *= t;
    }
    constexpr double kTileCycles = 8;  // loop, addresses, conditions of the border
    double cycles = tiles * (tile_cycles(d, vectors) + kTileCycles);
    for (int a : live_) {
      if (a == vector_axis_) {
        cycles *= tail_factor(extent(a), width(d) * strip(d), true, tail_of(d));
      } else {
        cycles *= tail_factor(extent(a), tile(d, a), false, tail_of(d));
      }
    }
    const double traffic = traffic_cycles(d, tiles);
    cycles = std::max(cycles, traffic) + 0.3 * std::min(cycles, traffic);
    double trips = 1;
    size_t left = parallel(d);
    for (int a : live_) {
      if (left == 0) break;
      const double n = std::ceil(static_cast<double>(extent(a)) / static_cast<double>(tile_length(d, a)));
      if (tile_length(d, a) >= extent(a)) continue;  // no outer loop
      trips *= n;
      --left;
    }
    cycles += pad_cycles(d);
    // What is added up here is more than is measured, and other plans of the same stage are estimated
    // exactly.
    constexpr double kMeasured = 0.7;
    cycles *= kMeasured;
    const double speedup = trips / std::ceil(trips / context_.threads);
    return cycles * m.seconds_per_cycle / speedup + (trips > 1 ? m.fork_seconds : 0);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  enum class PadLocation : uint8_t { kInline, kTile, kRoot };

  int64_t extent(int axis) const { return info_.extents[static_cast<size_t>(axis)]; }
  int64_t tile(Decisions d, int axis) const {
    const size_t slot = tile_slot_[static_cast<size_t>(axis)];
    return slot == kNone ? 1 : lengths(d, slot)[0];
  }
  // Some index moves along the axis and along the window.
  bool slides_along(int axis) const {
    for (const auto& read : reads_)
      for (const auto& index : read.indices) {
        if (!index.affine || index.coefficients[static_cast<size_t>(axis)] == 0) continue;
        for (int r = info_.num_spatial; r < info_.num_axes(); ++r)
          if (extent(r) > 1 && index.coefficients[static_cast<size_t>(r)] != 0) return true;
      }
    return false;
  }
  int64_t width(Decisions d) const { return std::min(lengths(d, strip_slot_)[1], extent(vector_axis_)); }
  int64_t strip(Decisions d) const { return lengths(d, strip_slot_)[0]; }
  int64_t tile_length(Decisions d, int axis) const {
    return axis == vector_axis_ ? width(d) * strip(d) : tile(d, axis);
  }
  PadLocation location(Decisions d, size_t pad) const {
    return static_cast<PadLocation>(category(d, pad_slots_[pad]));
  }
  size_t parallel(Decisions d) const {
    return parallel_slot_ == kNone ? 0 : static_cast<size_t>(category(d, parallel_slot_));
  }
  sched::TailPolicy tail_of(Decisions d) const {
    return category(d, tail_slot_) == 1 ? sched::TailPolicy::kPeel : sched::TailPolicy::kPredicate;
  }
  // Of the anchor's axes, in one tile.
  std::vector<double> tile_ranges(Decisions d) const {
    std::vector<double> ranges;
    for (int a = 0; a < info_.num_axes(); ++a)
      ranges.push_back(static_cast<double>(
          a < info_.num_spatial && extent(a) > 1 ? std::min(extent(a), tile_length(d, a)) : extent(a)));
    return ranges;
  }

  void emit_pads(TraceMaker& maker, Decisions d, LoopId outer_last) const {
    for (size_t p = 0; p < pads_.size(); ++p) {
      if (location(d, p) == PadLocation::kInline) continue;
      const auto& pad = context_.stage(pads_[p]);
      const bool root = location(d, p) == PadLocation::kRoot || outer_last == kNoLoop;
      std::vector<int64_t> extents = pad.extents;
      if (!root)
        for (const auto& read : reads_) {
          if (read.producer != pads_[p]) continue;
          const auto touched = footprint(read, tile_ranges(d));
          for (size_t k = 0; k < extents.size(); ++k)
            extents[k] = std::min(extents[k], static_cast<int64_t>(touched[k]));
        }
      emit_copy_stage(maker, pads_[p], extents, pad.contiguous_axis,
                      context_.machine.lanes(pad.element_bytes), root && context_.threads > 1, tail_of(d));
      if (!root) maker.compute_at(pads_[p], output_, outer_last);
    }
  }

  // Places along the window and the rows of a tile that differ in their load, with the vector axis at rest.
  double distinct_loads(const Read& read, Decisions d) const {
    std::vector<double> ranges = tile_ranges(d);
    ranges[static_cast<size_t>(vector_axis_)] = 1;
    double loads = 1;
    for (double touched : footprint(read, ranges)) loads *= touched;
    return loads;
  }

  double tile_cycles(Decisions d, double vectors) const {
    const auto& m = context_.machine;
    const double window = info_.reduce_points();
    const double arithmetic = vectors * window * std::max(1.0, info_.flops_per_point / 2);
    const double strips = static_cast<double>(strip(d));
    double loads = 0, other = 0, kept = 0;
    for (const auto& read : reads_) {
      const double distinct = distinct_loads(read, d);
      if (!read.depends_on(vector_axis_)) {
        loads += distinct;
        kept += std::min(window, distinct);
        continue;
      }
      const int64_t stride = read.strides.empty() ? 8 : read.strides[static_cast<size_t>(vector_axis_)];
      const double v = static_cast<double>(width(d));
      // Half of the vectors lie across two cache lines.
      constexpr double kCrossing = 1.5;
      const double factor = std::abs(stride) <= 1 ? 1 : std::abs(stride) <= 4 ? std::abs(stride) * 0.7 : v;
      loads += strips * distinct * factor * kCrossing;
      if (std::abs(stride) > 1)
        other += strips * distinct * (std::abs(stride) <= 4 ? std::abs(stride) - 1 : v);
      kept += std::min(window, distinct);
      bool inline_pad = read.guarded;
      for (size_t p = 0; p < pads_.size(); ++p)
        inline_pad = inline_pad || (pads_[p] == read.producer && location(d, p) == PadLocation::kInline);
      // Rows are guarded by choosing an address; columns by masks, which are constants if the row is whole.
      if (inline_pad)
        other += distinct * (tile_length(d, vector_axis_) >= extent(vector_axis_) ? 0.5 : strips * 3);
    }
    // Operands that do not stay in registers are loaded once for each use.
    const double excess = kept + 4 - static_cast<double>(m.registers);
    if (excess > 0) loads = std::max(loads, std::min(arithmetic, loads + arithmetic * excess / kept));
    const double written =
        vectors * (1 + 0.5 * (anchor_ == output_ ? 0 : context_.stage(output_).flops_per_point));
    // Each output is one chain of dependent operations; a reorder buffer holds only so many of them.
    constexpr double kReorderBuffer = 320;
    const double chains = std::max(1.0, kReorderBuffer / (1.5 * window));
    double cycles = std::max({arithmetic / m.fma_per_cycle, loads / m.loads_per_cycle, other,
                              (arithmetic + loads + other + written) / m.issue_per_cycle,
                              vectors * window * m.fma_latency / chains});
    if (!m.masked_memory && (width(d) & (width(d) - 1)) != 0) cycles *= 2;
    return cycles + written / m.fma_per_cycle;
  }

  // What crosses the cache that holds everything: whole rows stream, pieces of rows touch a line more each.
  double traffic_cycles(Decisions d, double tiles) const {
    const auto& m = context_.machine;
    const auto& out = context_.stage(output_);
    double bytes = out.spatial_points() * out.element_bytes, moved = 2 * bytes;
    for (const auto& read : reads_) {
      const auto& producer = context_.stage(read.producer);
      bytes += producer.spatial_points() * producer.element_bytes;
      if (!read.depends_on(vector_axis_)) continue;
      const auto touched = footprint(read, tile_ranges(d));
      double elements = 1;
      for (double t : touched) elements *= t;
      const bool whole = touched.back() >= static_cast<double>(producer.extents.back());
      moved += tiles * (elements * producer.element_bytes + (whole ? 1 : elements / touched.back()) * 64);
    }
    const double rate = bytes <= 0.75 * m.l2_bytes   ? m.l2_bytes_per_cycle
                        : bytes <= 0.75 * m.l3_bytes ? m.l3_bytes_per_cycle
                                                     : m.memory_bytes_per_cycle;
    return moved / rate;
  }

  double pad_cycles(Decisions d) const {
    const auto& m = context_.machine;
    double cycles = 0;
    for (size_t p = 0; p < pads_.size(); ++p) {
      if (location(d, p) == PadLocation::kInline) continue;
      const auto& pad = context_.stage(pads_[p]);
      const double lanes = static_cast<double>(m.lanes(pad.element_bytes));
      if (location(d, p) == PadLocation::kRoot) {
        const double points = pad.spatial_points();
        cycles += points / lanes * 4 + points * pad.element_bytes * 2 / m.l3_bytes_per_cycle +
                  (context_.threads > 1 ? m.fork_seconds / m.seconds_per_cycle * context_.threads : 0);
        continue;
      }
      double tiles = 1;
      for (int a : live_)
        tiles *= std::ceil(static_cast<double>(extent(a)) / static_cast<double>(tile_length(d, a)));
      for (const auto& read : reads_) {
        if (read.producer != pads_[p]) continue;
        const auto touched = footprint(read, tile_ranges(d));
        double rows = 1;
        for (double t : touched) rows *= t;
        rows /= std::max(1.0, touched.empty() ? 1 : touched.back());
        // The window's loads wait for stores that they only partly overlap.
        cycles += tiles * (rows * std::ceil((touched.empty() ? 1 : touched.back()) / lanes) * 5 + 15);
      }
    }
    return cycles;
  }

  int output_, anchor_;
  std::vector<int> pads_;
  const StageInfo& info_;         // of the anchor
  std::vector<int> output_axis_;  // by the anchor's spatial axis: axis of the output stage
  std::vector<Read> reads_;       // of the anchor, through inlined stages
  int64_t lanes_;
  std::vector<int> live_;  // spatial axes of extent > 1, in the output's order
  int vector_axis_ = -1;   // contiguous in the output
  std::vector<size_t> tile_slot_, pad_slots_;
  size_t strip_slot_ = kNone, parallel_slot_ = kNone, tail_slot_ = kNone;
};

// Every reduce axis moves some read along an output axis: no channels are summed, so that no operand but the
// window's weights is used by several outputs as a whole.
bool slides(const PlanContext& context, int anchor) {
  const auto& info = context.stage(anchor);
  std::vector<bool> sliding(info.extents.size(), false);
  for (const auto& read : effective_reads(context, anchor))
    for (const auto& index : read.indices) {
      if (!index.affine) continue;
      const auto moves = [&](int axis) {
        const auto a = static_cast<size_t>(axis);
        return index.coefficients[a] != 0 && info.extents[a] > 1;
      };
      bool spatial = false;
      for (int a = 0; a < info.num_spatial; ++a) spatial = spatial || moves(a);
      for (int a = info.num_spatial; spatial && a < info.num_axes(); ++a)
        if (moves(a)) sliding[static_cast<size_t>(a)] = true;
    }
  bool any = false;
  for (int a = info.num_spatial; a < info.num_axes(); ++a) {
    if (info.extents[static_cast<size_t>(a)] <= 1) continue;
    if (!sliding[static_cast<size_t>(a)]) return false;
    any = true;
  }
  return any;
}

}  // namespace

std::unique_ptr<Plan> make_window_plan(const PlanContext& context, int output, int anchor,
                                       std::vector<int> pads) {
  const auto& info = context.stage(anchor);
  if (info.arg_reduction || info.reduce_points() > kMaxWindow || !slides(context, anchor)) return nullptr;
  std::vector<int> output_axis(static_cast<size_t>(info.num_spatial), -1);
  if (output == anchor) {
    for (int a = 0; a < info.num_spatial; ++a) output_axis[static_cast<size_t>(a)] = a;
  } else {
    for (const auto& read : effective_reads(context, output))
      if (read.producer == anchor) output_axis = context.analysis->axis_map(read);
  }
  bool lanes = false;
  for (int a = 0; a < info.num_spatial; ++a)
    lanes = lanes || (info.extents[static_cast<size_t>(a)] > 1 &&
                      output_axis[static_cast<size_t>(a)] == context.stage(output).contiguous_axis);
  if (!lanes) return nullptr;
  return std::make_unique<WindowPlan>(context, output, anchor, std::move(pads), std::move(output_axis));
}

}  // namespace tensorsmith::space

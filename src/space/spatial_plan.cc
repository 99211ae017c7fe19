// Plans of stages without data reuse: elementwise chains, transposes, gathers, argmax. Rows outside, the
// contiguous axis in vectors; optionally all axes tiled; or nothing but a parallel loop.
#include <algorithm>
#include <cmath>

#include "space/plan.h"

namespace tensorsmith::space {

namespace {

using LoopId = TraceMaker::LoopId;

class SpatialPlan final : public Plan {
 public:
  SpatialPlan(const PlanContext& context, int output, bool tiled)
      : Plan(context), output_(output), tiled_(tiled), info_(context.stage(output)) {
    reads_ = effective_reads(context, output);
    const std::string name = context.op(output).name;
    for (int a = 0; a < info_.num_spatial; ++a)
      if (info_.extents[static_cast<size_t>(a)] > 1) live_.push_back(a);
    lanes_ = context.machine.lanes(info_.element_bytes);
    vector_axis_ = info_.arg_reduction ? -1 : info_.contiguous_axis;
    flat_ = !tiled && !info_.reduction && live_.size() > 1 && flat_compatible();
    if (flat_) flat_slot_ = add_category(name + ".flat", DecisionRole::kLocation, {1, 0.5, 0.5, 0.5, 0.5});
    if (vector_axis_ >= 0)
      tile_slot_ = add_tile(name + ".tile." + context.axis_name(output, vector_axis_),
                            info_.extents[static_cast<size_t>(vector_axis_)], 2, lanes_, 4 * lanes_);
    tile_slots_.assign(info_.extents.size(), kNone);
    if (tiled)
      for (int a : live_)
        if (a != vector_axis_)
          tile_slots_[static_cast<size_t>(a)] = add_tile(name + ".tile." + context.axis_name(output, a),
                                                         info_.extents[static_cast<size_t>(a)], 1, 1, 64);
    if (context.threads > 1 && !live_.empty()) {
      std::vector<double> weights(live_.size() + 1, 1.0);
      weights[0] = 0.1;
      parallel_slot_ = add_category(name + ".parallel", DecisionRole::kParallel, weights);
    }
    tail_slot_ = add_category(name + ".tail", DecisionRole::kTail, {0.25, 0.75});
  }

  std::string describe() const override { return (tiled_ ? "tiles " : "rows ") + context_.op(output_).name; }

  void emit(TraceMaker& maker, Decisions d) const override {
    const auto tail = category(d, tail_slot_) == 1 ? sched::TailPolicy::kPeel : sched::TailPolicy::kPredicate;
    const size_t parallel = parallel_slot_ == kNone ? 0 : static_cast<size_t>(category(d, parallel_slot_));
    auto loops = maker.leaves(output_);
    if (is_flat(d)) {
      const std::vector<LoopId> all(loops.begin(), loops.end());
      const LoopId fused = maker.fuse(output_, all);
      // Loops of chunks, of vectors in a chunk, and one vector.
      const auto made = maker.split(output_, fused, {flat_chunk(d), flat_length(d)}, tail);
      if (parallel > 0) maker.annotate(output_, made[0], sched::Annotation::kParallel);
      maker.annotate(output_, made[2], sched::Annotation::kVectorize);
      return;
    }
    std::vector<LoopId> outer, inner, reduce;
    LoopId vector_loop = -1;
    for (int a : live_) {
      const auto i = static_cast<size_t>(a);
      if (a == vector_axis_) continue;
      const int64_t t = tile_slots_[i] == kNone ? 1 : lengths(d, tile_slots_[i])[0];
      if (t == 1) {
        outer.push_back(loops[i]);
      } else if (t == info_.extents[i]) {
        inner.push_back(loops[i]);
      } else {
        const auto made = maker.split(output_, loops[i], {t}, tail);
        outer.push_back(made[0]);
        inner.push_back(made[1]);
      }
    }
    if (vector_axis_ >= 0) {
      const auto i = static_cast<size_t>(vector_axis_);
      const int64_t v = vector_length(d), u = unrolled(d), e = info_.extents[i];
      std::vector<LoopId> made{loops[i]};
      if (v * u >= e) {
        if (v < e) made = maker.split(output_, loops[i], {v}, tail);
      } else {
        made = maker.split(output_, loops[i], u > 1 ? std::vector<int64_t>{u, v} : std::vector<int64_t>{v},
                           tail);
        outer.push_back(made[0]);
        made.erase(made.begin());
      }
      vector_loop = made.back();
      if (made.size() > 1) inner.push_back(made[0]);
    }
    for (int a = info_.num_spatial; a < info_.num_axes(); ++a)
      reduce.push_back(loops[static_cast<size_t>(a)]);
    std::vector<LoopId> order = outer;
    for (LoopId loop : maker.leaves(output_)) {
      const auto in = [&](const std::vector<LoopId>& l) {
        return std::find(l.begin(), l.end(), loop) != l.end();
      };
      if (!in(outer) && !in(inner) && !in(reduce) && loop != vector_loop) order.push_back(loop);
    }
    order.insert(order.end(), reduce.begin(), reduce.end());
    order.insert(order.end(), inner.begin(), inner.end());
    if (vector_loop >= 0) order.push_back(vector_loop);
    maker.reorder(output_, order);
    if (vector_loop >= 0 && vector_length(d) > 1)
      maker.annotate(output_, vector_loop, sched::Annotation::kVectorize);
    parallelize(maker, output_, outer, std::min(parallel, outer.size()));
  }

  Status check(Decisions d) const override {
    if (vector_axis_ < 0) return {};
    const auto refuse = [&](std::string reason) {
      return Error{ErrorCode::kResourceExhausted, context_.op(output_).name, std::move(reason)};
    };
    double inner = static_cast<double>(vector_length(d));
    for (size_t slot : tile_slots_)
      if (slot != kNone) inner *= static_cast<double>(lengths(d, slot)[0]);
    if (inner * info_.element_bytes > 2 * context_.machine.l2_bytes)
      return refuse("the tile does not fit the cache");
    if (vector_length(d) > 8 * lanes_) return refuse("the vector is too long");
    return {};
  }

  double estimate(Decisions d) const override {
    const auto& m = context_.machine;
    const double points = info_.spatial_points() * info_.reduce_points();
    const double v = static_cast<double>(vector_axis_ < 0 ? 1
                                         : is_flat(d)     ? flat_length(d)
                                                          : vector_length(d));
    const double full = static_cast<double>(lanes_);
    const double e =
        vector_axis_ < 0 ? 1 : static_cast<double>(info_.extents[static_cast<size_t>(vector_axis_)]);
    const double width = std::min(v, full);
    double per_vector = info_.flops_per_point * std::ceil(v / full) + 1;
    for (const auto& read : reads_) {
      const bool strided =
          read.affine && vector_axis_ >= 0 && std::abs(read.strides[static_cast<size_t>(vector_axis_)]) > 1;
      // An index that repeats (the one of i / 2) is one element for a vector inside a block.
      const bool repeats = !read.affine && vector_axis_ >= 0 && read.blocked &&
                           read.block_of(vector_axis_) % static_cast<int64_t>(v) == 0;
      if (read.affine || repeats)
        per_vector += strided ? v * 1.5 : std::ceil(v / full) * (read.guarded ? 3 : 1);
      else
        per_vector += v * 3;
    }
    double vectors = points / v;
    if (!is_flat(d) && v < e) vectors *= std::ceil(e / v) * v / e;
    double cycles =
        vectors * per_vector + points / std::max(1.0, width * static_cast<double>(unrolled(d))) * 0.5;
    // Strided reads fetch a cache line for each element unless neighbours are used soon (tiles).
    double bytes = points * info_.element_bytes;
    for (const auto& read : reads_) {
      double factor = 1;
      if (vector_axis_ >= 0 && read.affine && std::abs(read.strides[static_cast<size_t>(vector_axis_)]) > 1)
        factor = tiled_ ? 1.5 : 4;
      bytes += points * context_.stage(read.producer).element_bytes * factor;
    }
    cycles = std::max(cycles, bytes / (bytes > m.l2_bytes ? m.l3_bytes_per_cycle : m.l2_bytes_per_cycle));
    // A condition for each vector.
    if (!is_flat(d) && vector_axis_ >= 0 && static_cast<int64_t>(e) % (vector_length(d) * unrolled(d)) != 0 &&
        category(d, tail_slot_) == 0)
      cycles *= 1.4;
    double trips = 1;
    const size_t parallel = parallel_slot_ == kNone ? 0 : static_cast<size_t>(category(d, parallel_slot_));
    if (is_flat(d)) {
      if (parallel > 0) trips = std::ceil(info_.spatial_points() / (v * static_cast<double>(flat_chunk(d))));
    } else {
      size_t count = 0;
      for (int a : live_) {
        if (count++ >= parallel) break;
        const auto i = static_cast<size_t>(a);
        const double t = a == vector_axis_         ? v * static_cast<double>(unrolled(d))
                         : tile_slots_[i] == kNone ? 1.0
                                                   : static_cast<double>(lengths(d, tile_slots_[i])[0]);
        trips *= std::ceil(static_cast<double>(info_.extents[i]) / t);
      }
    }
    const double threads = context_.threads;
    const double speedup = trips / std::ceil(trips / threads);
    return cycles * m.seconds_per_cycle / speedup + (trips > 1 && parallel > 0 ? m.fork_seconds : 0);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  // Categories of the flat slot: 0 = rows, else {vector length, vectors in a chunk}.
  bool is_flat(Decisions d) const { return flat_ && category(d, flat_slot_) > 0; }
  int64_t flat_length(Decisions d) const { return category(d, flat_slot_) >= 3 ? 2 * lanes_ : lanes_; }
  int64_t flat_chunk(Decisions d) const { return category(d, flat_slot_) % 2 == 1 ? 16 : 128; }
  int64_t vector_length(Decisions d) const { return lengths(d, tile_slot_)[1]; }
  int64_t unrolled(Decisions d) const { return vector_axis_ < 0 ? 1 : lengths(d, tile_slot_)[0]; }

  // Every read runs through memory like the output, or does not move.
  bool flat_compatible() const {
    const auto strides = context_.op(output_).output()->effective_strides();
    for (const auto& read : reads_) {
      if (!read.affine || read.guarded) return false;
      bool same = true, still = true;
      for (int a : live_) {
        const auto i = static_cast<size_t>(a);
        same = same && read.strides[i] == strides[i];
        still = still && read.strides[i] == 0;
      }
      if (!same && !still) return false;
    }
    return true;
  }

  int output_;
  bool tiled_;
  const StageInfo& info_;
  std::vector<Read> reads_;
  std::vector<int> live_;
  int64_t lanes_ = 1;
  int vector_axis_ = -1;
  bool flat_ = false;
  size_t flat_slot_ = kNone, tile_slot_ = kNone, parallel_slot_ = kNone, tail_slot_ = kNone;
  std::vector<size_t> tile_slots_;
};

class PlainPlan final : public Plan {
 public:
  PlainPlan(const PlanContext& context, int output) : Plan(context), output_(output) {}

  std::string describe() const override { return "plain " + context_.op(output_).name; }
  void emit(TraceMaker& maker, Decisions) const override {
    if (context_.threads <= 1) return;
    const auto& info = context_.stage(output_);
    for (int a = 0; a < info.num_spatial; ++a) {
      if (info.extents[static_cast<size_t>(a)] <= 1) continue;
      maker.annotate(output_, maker.leaves(output_)[static_cast<size_t>(a)], sched::Annotation::kParallel);
      return;
    }
  }
  Status check(Decisions) const override { return {}; }
  double estimate(Decisions) const override {
    const auto& info = context_.stage(output_);
    const double reads = static_cast<double>(info.reads.size());
    return info.spatial_points() * info.reduce_points() * (info.flops_per_point + reads + 5) *
           context_.machine.seconds_per_cycle;
  }

 private:
  int output_;
};

}  // namespace

std::unique_ptr<Plan> make_spatial_plan(const PlanContext& context, int output, bool tiled) {
  return std::make_unique<SpatialPlan>(context, output, tiled);
}

std::unique_ptr<Plan> make_plain_plan(const PlanContext& context, int output) {
  return std::make_unique<PlainPlan>(context, output);
}

}  // namespace tensorsmith::space

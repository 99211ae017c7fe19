// Row-wise reductions (softmax, layer normalization, means): the root stage's rows run outside (in parallel),
// and everything that one row needs is computed inside its iteration. Where rows are contiguous in memory
// several rows fill a vector; else reductions along the contiguous axis are factored into vector lanes.
#include <algorithm>
#include <cmath>

#include "space/plan.h"

namespace tensorsmith::space {

namespace {

using LoopId = TraceMaker::LoopId;

class RowsPlan final : public Plan {
 public:
  // attached: producers before consumers; empty when the output is the reduction itself.
  RowsPlan(const PlanContext& context, int output, std::vector<int> attached)
      : Plan(context), output_(output), info_(context.stage(output)) {
    if (info_.reduction) {
      self_ = true;
      add_member(output);
      for (int a = 0; a < info_.num_spatial; ++a) members_.back().to_output[static_cast<size_t>(a)] = a;
    }
    map_members(attached);
    const std::string name = context.op(output).name;
    lanes_ = context.machine.lanes(info_.element_bytes);
    for (int a = 0; a < info_.num_spatial; ++a) {
      if (info_.extents[static_cast<size_t>(a)] <= 1) continue;
      bool row = true;
      for (const auto& member : members_) row = row && maps_to(member, a);
      (row ? rows_ : columns_).push_back(a);
    }
    contiguous_row_ = !rows_.empty() && rows_.back() == info_.contiguous_axis && !reduces_along_memory();
    if (contiguous_row_) width_slot_ = add_category(name + ".width", DecisionRole::kVectorize, {1, 1, 0.5});
    std::vector<bool> inlined = context.inlined;  // and the members that may be
    for (auto& member : members_) {
      const auto& stage = context.stage(member.stage);
      const std::string own = context.op(member.stage).name;
      const auto s = static_cast<size_t>(member.stage);
      inlined[s] = !stage.reduction && !stage.output;
      inlined[s] = inlined[s] && inlining_fits(*context.workload, inlined);
      if (inlined[s]) member.inline_slot = add_category(own + ".inline", DecisionRole::kLocation, {2, 1});
      if (stage.reduction && !contiguous_row_) {
        find_factor_axis(member);
        if (member.factor_axis >= 0)
          member.factor_slot = add_category(own + ".rfactor", DecisionRole::kVectorize, {0.3, 1, 1, 1});
      }
    }
    if (context.threads > 1 && !rows_.empty()) {
      std::vector<double> weights(rows_.size() + 1, 1.0);
      weights[0] = 0.1;
      parallel_slot_ = add_category(name + ".parallel", DecisionRole::kParallel, weights);
    }
    tail_slot_ = add_category(name + ".tail", DecisionRole::kTail, {0.25, 0.75});
  }

  std::string describe() const override {
    std::string text = "row-wise " + context_.op(output_).name + " of";
    for (const auto& member : members_) text += " " + context_.op(member.stage).name;
    return text;
  }

  void emit(TraceMaker& maker, Decisions d) const override {
    const auto tail = category(d, tail_slot_) == 1 ? sched::TailPolicy::kPeel : sched::TailPolicy::kPredicate;
    for (const auto& member : members_)
      if (member.inline_slot != kNone && category(d, member.inline_slot) == 1)
        maker.compute_inline(member.stage);
    int self_stage = output_;
    if (self_) self_stage = maker.cache_write(output_, ir::MemoryScope::kLocal);

    // The root stage.
    const auto loops = maker.leaves(output_);
    std::vector<LoopId> outer, columns;
    LoopId vector_loop = -1;
    for (int a : rows_) {
      const auto i = static_cast<size_t>(a);
      if (contiguous_row_ && a == rows_.back()) {
        const int64_t width = row_width(d);
        if (width < info_.extents[i]) {
          const auto made = maker.split(output_, loops[i], {width}, tail);
          outer.push_back(made[0]);
          vector_loop = made[1];
        } else {
          vector_loop = loops[i];
        }
      } else {
        outer.push_back(loops[i]);
      }
    }
    for (int a : columns_) {
      const auto i = static_cast<size_t>(a);
      if (a == info_.contiguous_axis) {
        vector_loop = loops[i];
        if (info_.extents[i] > lanes_) {
          const auto made = maker.split(output_, loops[i], {lanes_}, tail);
          columns.push_back(made[0]);
          vector_loop = made[1];
        }
      } else {
        columns.push_back(loops[i]);
      }
    }
    std::vector<LoopId> order = outer;
    for (LoopId loop : maker.leaves(output_)) {
      const auto in = [&](const std::vector<LoopId>& l) {
        return std::find(l.begin(), l.end(), loop) != l.end();
      };
      if (!in(outer) && !in(columns) && loop != vector_loop) order.push_back(loop);
    }
    order.insert(order.end(), columns.begin(), columns.end());
    if (vector_loop >= 0) order.push_back(vector_loop);
    maker.reorder(output_, order);
    if (vector_loop >= 0) maker.annotate(output_, vector_loop, sched::Annotation::kVectorize);
    LoopId attach = outer.empty() ? -1 : outer.back();
    const size_t parallel = parallel_slot_ == kNone ? 0 : static_cast<size_t>(category(d, parallel_slot_));
    if (const size_t count = std::min(parallel, outer.size()); count > 0) {
      const std::vector<LoopId> fused(outer.begin(), outer.begin() + static_cast<std::ptrdiff_t>(count));
      const LoopId loop = maker.fuse(output_, fused);
      maker.annotate(output_, loop, sched::Annotation::kParallel);
      if (count == outer.size()) attach = loop;
    }
    // Consumers before producers, so that each stage's region is known when it is attached.
    for (const auto& member : members_) {
      if (member.inline_slot != kNone && category(d, member.inline_slot) == 1) continue;
      const int stage = self_ && member.stage == output_ ? self_stage : member.stage;
      if (context_.stage(member.stage).reduction) {
        emit_reduction(maker, d, member, stage, attach, tail);
      } else {
        emit_member(maker, d, member, stage, tail);
        if (attach >= 0) maker.compute_at(stage, output_, attach);
      }
    }
  }

  Status check(Decisions) const override { return {}; }

  double estimate(Decisions d) const override {
    const auto& m = context_.machine;
    double cycles = 0;
    double inlined = 0;
    for (const auto& member : members_) {
      const auto& stage = context_.stage(member.stage);
      const double points = stage.spatial_points() * stage.reduce_points();
      // Cycles a point: of the arithmetic in vectors of `width`, and of reads that gather.
      double width = 1, extra = 0, gathers = 0;
      const double flops = stage.flops_per_point + 1;
      if (contiguous_row_) {
        width = static_cast<double>(std::min(row_width(d), lanes_));
        const double rows = static_cast<double>(row_width(d));
        for (const auto& read : effective_reads(context_, member.stage))
          gathers +=
              (read.affine ? read_cycles(stride_along_rows(member, read), rows, static_cast<double>(lanes_))
                           : rows * 2) /
              rows;
        // One chain of dependent operations for each vector of rows.
        if (stage.reduction) gathers = std::max(gathers, m.fma_latency / rows - flops / width);
      } else if (!stage.reduction) {
        width = std::min<double>(static_cast<double>(lanes_), stage.spatial_points());
      } else if (member.factor_slot != kNone && category(d, member.factor_slot) > 0) {
        // The dependent chain of additions is shared by the vectors in flight; then the lanes are halved.
        const double factor = static_cast<double>(factor_of(member, category(d, member.factor_slot)));
        const double full = static_cast<double>(lanes_);
        width = std::min(factor, full) / std::max(1.0, m.fma_latency * full / std::max(factor, full) / flops);
        extra = stage.spatial_points() * (factor / full + 3 * std::log2(std::min(factor, full)));
      } else {
        width = flops / m.fma_latency;
      }
      if (member.inline_slot != kNone && category(d, member.inline_slot) == 1) {
        inlined += stage.flops_per_point * static_cast<double>(stage.consumers.size()) * points /
                   static_cast<double>(lanes_);
        continue;
      }
      cycles += points * (flops / width + gathers) + extra;
    }
    cycles += inlined;
    if (!self_) cycles += info_.spatial_points() / static_cast<double>(lanes_) * (info_.flops_per_point + 2);
    const auto tail = category(d, tail_slot_) == 1 ? sched::TailPolicy::kPeel : sched::TailPolicy::kPredicate;
    if (contiguous_row_) {
      cycles *= tail_factor(info_.extents[static_cast<size_t>(rows_.back())], row_width(d), true, tail);
    } else if (info_.contiguous_axis >= 0) {
      cycles *= tail_factor(info_.extents[static_cast<size_t>(info_.contiguous_axis)], lanes_, true, tail);
    }
    double trips = 1;
    const size_t parallel = parallel_slot_ == kNone ? 0 : static_cast<size_t>(category(d, parallel_slot_));
    for (size_t i = 0; i < std::min(parallel, rows_.size()); ++i)
      trips *= static_cast<double>(info_.extents[static_cast<size_t>(rows_[i])]) /
               (contiguous_row_ && i + 1 == rows_.size() ? static_cast<double>(row_width(d)) : 1.0);
    const double threads = context_.threads;
    trips = std::max(1.0, std::ceil(trips));
    const double speedup = trips / std::ceil(trips / threads);
    return cycles * m.seconds_per_cycle / speedup + (trips > 1 && parallel > 0 ? m.fork_seconds : 0);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  struct Member {
    int stage = 0;
    std::vector<int> to_output;  // by own spatial axis: the root stage's axis, or -1
    int factor_axis = -1;        // reduce axis (number among all axes) that is contiguous in the reads
    size_t factor_slot = kNone, inline_slot = kNone;
  };

  void add_member(int stage) {
    Member member;
    member.stage = stage;
    member.to_output.assign(static_cast<size_t>(context_.stage(stage).num_spatial), -1);
    members_.push_back(std::move(member));
  }

  bool maps_to(const Member& member, int axis) const {
    return std::find(member.to_output.begin(), member.to_output.end(), axis) != member.to_output.end();
  }

  // Axis maps from the consumers inside the group, last stage first.
  void map_members(const std::vector<int>& attached) {
    for (size_t k = attached.size(); k-- > 0;) {
      add_member(attached[k]);
      Member& member = members_.back();
      bool first = true;
      const auto merge = [&](int consumer, const std::vector<int>* consumer_map) {
        for (const auto& read : effective_reads(context_, consumer)) {
          if (read.producer != member.stage) continue;
          const auto map = context_.analysis->axis_map(read);
          for (size_t x = 0; x < map.size(); ++x) {
            int to = -1;
            const bool spatial = map[x] >= 0 && map[x] < context_.stage(consumer).num_spatial;
            if (spatial) to = consumer_map == nullptr ? map[x] : (*consumer_map)[static_cast<size_t>(map[x])];
            if (to >= 0 && info_.extents[static_cast<size_t>(to)] != context_.stage(member.stage).extents[x])
              to = -1;
            member.to_output[x] = first || member.to_output[x] == to ? to : -1;
          }
          first = false;
        }
      };
      if (!self_) merge(output_, nullptr);
      for (size_t other = 0; other + 1 < members_.size(); ++other)
        merge(members_[other].stage, &members_[other].to_output);
    }
  }

  void find_factor_axis(Member& member) const {
    const auto& stage = context_.stage(member.stage);
    if (stage.arg_reduction) return;
    for (const auto& read : effective_reads(context_, member.stage)) {
      if (!read.affine) continue;
      for (int a = stage.num_spatial; a < stage.num_axes(); ++a)
        if (std::abs(read.strides[static_cast<size_t>(a)]) == 1 && stage.extents[static_cast<size_t>(a)] > 1)
          member.factor_axis = a;
    }
  }

  // Some reduction reads whole vectors along a reduce axis, and none along the rows.
  bool reduces_along_memory() {
    bool along = false;
    for (auto& member : members_) {
      const auto& stage = context_.stage(member.stage);
      if (!stage.reduction) continue;
      find_factor_axis(member);
      along = along ||
              (member.factor_axis >= 0 && stage.extents[static_cast<size_t>(member.factor_axis)] >= lanes_);
      for (const auto& read : effective_reads(context_, member.stage))
        if (!read.affine || std::abs(stride_along_rows(member, read)) == 1) return false;
    }
    return along;
  }

  int64_t factor_of(const Member& member, int64_t choice) const {
    const auto& stage = context_.stage(member.stage);
    const int64_t extent = stage.extents[static_cast<size_t>(member.factor_axis)];
    const int64_t own_lanes = context_.machine.lanes(stage.element_bytes);
    const int64_t factor = own_lanes * (int64_t{1} << (choice - 1));
    return std::min(factor, extent);
  }

  int64_t row_width(Decisions d) const {
    const int64_t extent = info_.extents[static_cast<size_t>(rows_.back())];
    return std::min(extent, lanes_ * (int64_t{1} << category(d, width_slot_)));
  }

  // Elements that a member's read moves from one row to the next, in vectors of rows.
  int64_t stride_along_rows(const Member& member, const Read& read) const {
    for (size_t a = 0; a < member.to_output.size(); ++a)
      if (member.to_output[a] == rows_.back()) return read.strides[a];
    return 0;
  }

  // Orders a member's loops so that the vector axis is innermost, and vectorizes it.
  void emit_member(TraceMaker& maker, Decisions d, const Member& member, int stage,
                   sched::TailPolicy tail) const {
    const auto& info = context_.stage(member.stage);
    const auto loops = maker.leaves(stage);
    int vector_axis = info.contiguous_axis;
    int64_t extent = vector_axis < 0 ? 1 : info.extents[static_cast<size_t>(vector_axis)];
    for (size_t a = 0; a < member.to_output.size(); ++a) {
      if (member.to_output[a] < 0) continue;
      const bool row = std::find(rows_.begin(), rows_.end(), member.to_output[a]) != rows_.end();
      if (!row) continue;
      if (contiguous_row_ && member.to_output[a] == rows_.back()) {
        vector_axis = static_cast<int>(a);
        extent = row_width(d);
      } else if (vector_axis == static_cast<int>(a)) {
        vector_axis = -1;  // one point a row
      }
    }
    if (vector_axis < 0) return;
    std::vector<LoopId> order;
    const LoopId own = loops[static_cast<size_t>(vector_axis)];
    LoopId vector_loop = own;
    std::vector<LoopId> inner{own};
    if (extent > 4 * lanes_) {
      inner = maker.split(stage, own, {lanes_}, tail);
      vector_loop = inner.back();
    }
    for (LoopId loop : loops)
      if (loop != own) order.push_back(loop);
    order.insert(order.end(), inner.begin(), inner.end());
    maker.reorder(stage, order);
    if (extent > 1) maker.annotate(stage, vector_loop, sched::Annotation::kVectorize);
  }

  void emit_reduction(TraceMaker& maker, Decisions d, const Member& member, int stage, LoopId attach,
                      sched::TailPolicy tail) const {
    const int64_t choice = member.factor_slot == kNone ? 0 : category(d, member.factor_slot);
    if (choice == 0) {
      emit_member(maker, d, member, stage, tail);
      if (attach >= 0) maker.compute_at(stage, output_, attach);
      return;
    }
    const auto& info = context_.stage(member.stage);
    const int64_t factor = factor_of(member, choice);
    const auto axis = static_cast<size_t>(member.factor_axis);
    LoopId lane_loop = maker.leaves(stage)[axis];
    if (factor < info.extents[axis]) lane_loop = maker.split(stage, lane_loop, {factor}, tail)[1];
    const auto spatial = static_cast<size_t>(info.num_spatial);
    const int partial = maker.rfactor(stage, lane_loop, spatial);
    // The partial results: lanes innermost.
    const auto loops = maker.leaves(partial);
    std::vector<LoopId> order(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(spatial));
    order.insert(order.end(), loops.begin() + static_cast<std::ptrdiff_t>(spatial) + 1, loops.end());
    LoopId vector_loop = loops[spatial];
    if (factor > lanes_ && factor % lanes_ == 0) {
      const auto made = maker.split(partial, vector_loop, {lanes_}, tail);
      order.push_back(made[0]);
      vector_loop = made[1];
      maker.annotate(partial, made[0], sched::Annotation::kUnroll);
    }
    order.push_back(vector_loop);
    maker.reorder(partial, order);
    maker.annotate(partial, vector_loop, sched::Annotation::kVectorize);
    std::vector<int> partials{partial};
    combine_lanes(maker, stage, factor, lanes_, partials);
    if (attach < 0) return;
    maker.compute_at(stage, output_, attach);
    for (size_t p = partials.size(); p-- > 0;) maker.compute_at(partials[p], output_, attach);
  }

  int output_;
  const StageInfo& info_;
  bool self_ = false;
  std::vector<Member> members_;  // consumers before producers
  std::vector<int> rows_, columns_;
  bool contiguous_row_ = false;
  int64_t lanes_ = 1;
  size_t width_slot_ = kNone, parallel_slot_ = kNone, tail_slot_ = kNone;
};

}  // namespace

std::unique_ptr<Plan> make_rows_plan(const PlanContext& context, int output, std::vector<int> attached) {
  return std::make_unique<RowsPlan>(context, output, std::move(attached));
}

}  // namespace tensorsmith::space

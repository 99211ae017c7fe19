#include "schedule_view.h"

#include "ir/analysis.h"
#include "ir/simplify.h"
#include "sched/relations.h"

namespace tensorsmith::feature::testing {

namespace {

using sched::Annotation;
using sched::IteratorId;
using sched::StageId;

std::pair<ir::ForKind, ir::ThreadAxis> kind_of(Annotation annotation) {
  switch (annotation) {
    case Annotation::kNone:
      return {ir::ForKind::kSerial, ir::ThreadAxis::kNone};
    case Annotation::kUnroll:
      return {ir::ForKind::kUnrolled, ir::ThreadAxis::kNone};
    case Annotation::kVectorize:
      return {ir::ForKind::kVectorized, ir::ThreadAxis::kNone};
    case Annotation::kParallel:
      return {ir::ForKind::kParallel, ir::ThreadAxis::kNone};
    case Annotation::kVThread:
      return {ir::ForKind::kThread, ir::ThreadAxis::kVirtual};
    case Annotation::kBlockX:
      return {ir::ForKind::kThread, ir::ThreadAxis::kBlockX};
    case Annotation::kThreadX:
      return {ir::ForKind::kThread, ir::ThreadAxis::kThreadX};
    case Annotation::kBlockY:
      return {ir::ForKind::kThread, ir::ThreadAxis::kBlockY};
    case Annotation::kThreadY:
      return {ir::ForKind::kThread, ir::ThreadAxis::kThreadY};
    case Annotation::kBlockZ:
      return {ir::ForKind::kThread, ir::ThreadAxis::kBlockZ};
    case Annotation::kThreadZ:
      return {ir::ForKind::kThread, ir::ThreadAxis::kThreadZ};
  }
  return {ir::ForKind::kSerial, ir::ThreadAxis::kNone};
}

class Viewer {
 public:
  Viewer(const sched::Schedule& schedule, const sched::Bounds& bounds)
      : schedule_(schedule), bounds_(bounds) {}

  ScheduleView run() {
    attached_.resize(schedule_.stages.size());
    ScheduleView view;
    view.program.name = "view";
    std::vector<StageId> roots;
    for (const StageId s : schedule_.stages.ids()) {
      const sched::Stage& stage = schedule_.stages[s];
      if (stage.is_placeholder()) {
        view.program.inputs.push_back(stage.op->output());
      } else if (stage.attach == sched::AttachKind::kAt) {
        attached_[stage.attach_stage].push_back(s);
      } else if (stage.attach == sched::AttachKind::kRoot) {
        roots.push_back(s);
      }
      if (stage.is_placeholder() || stage.attach == sched::AttachKind::kInlined) continue;
      for (const ir::Buffer& output : stage.op->outputs) {
        int64_t elements = 1;
        for (size_t d = 0; d < stage.op->spatial.size(); ++d) elements *= bounds_.stages[s].root_extent[d];
        view.allocated.emplace_back(output, elements);
      }
    }
    view.program.outputs = schedule_.outputs;
    ir::Stmt body;
    for (size_t i = roots.size(); i-- > 0;) body = before(roots[i], body);
    view.program.body = body;
    return view;
  }

 private:
  // Returns the stage's loops, then `rest`, with the stage's buffers allocated around both.
  ir::Stmt before(StageId s, const ir::Stmt& rest) {
    std::vector<ir::Stmt> stmts = {nest(s)};
    if (rest) stmts.push_back(rest);
    ir::Stmt body = ir::make_seq(std::move(stmts));
    if (schedule_.is_output(s)) return body;
    for (const ir::Buffer& output : schedule_.stages[s].op->outputs) body = ir::make_allocate(output, body);
    return body;
  }

  // Returns the leaf's loop variable, or 0 if the loop runs once.
  ir::Expr leaf_value(StageId s, IteratorId leaf) const {
    const bool once = bounds_.stages[s].extents[leaf] == 1;
    if (once && !bound_to_gpu(schedule_.stages[s].iterators[leaf].annotation)) return ir::Expr(0);
    return bounds_.loop_vars[s][leaf];
  }

  ir::Stmt loop(StageId s, IteratorId leaf, const ir::Var& var, bool outermost, ir::Stmt body) const {
    const sched::Stage& stage = schedule_.stages[s];
    const int64_t extent = bounds_.stages[s].extents[leaf];
    const Annotation annotation = stage.iterators[leaf].annotation;
    if (extent == 1 && !bound_to_gpu(annotation)) return body;
    const auto [kind, thread] = kind_of(annotation);
    return ir::make_for(
        {var, ir::Expr(extent), kind, thread, outermost ? stage.auto_unroll_max_step : 0, std::move(body)});
  }

  ir::Stmt nest(StageId s) {
    const sched::Stage& stage = schedule_.stages[s];
    const sched::StageBounds& stage_bounds = bounds_.stages[s];
    const auto& leaves = stage.leaves;
    const bool reduces = stage.op->has_reduction();
    // The init is placed before the first reduce loop, or where the schedule says.
    size_t init_position = leaves.size();
    if (reduces) {
      for (size_t p = leaves.size(); p-- > 0;) {
        const IteratorId id = leaves[p];
        if (stage.init_at.valid() ? leaves[p] == stage.init_at
                                  : stage.iterators[id].kind != sched::IterKind::kSpatial)
          init_position = p;
      }
    }
    IteratorId outermost;  // the outermost loop that exists
    for (size_t p = leaves.size(); p-- > 0;) {
      const IteratorId id = leaves[p];
      if (stage_bounds.extents[id] > 1 || bound_to_gpu(stage.iterators[id].annotation)) outermost = leaves[p];
    }

    // Variables in scope: those of the enclosing stages, then this stage's.
    const ir::VarBounds outside = ranges_;
    IdVector<IteratorId, ir::Expr> values(stage.iterators.size());
    for (const IteratorId leaf : leaves) {
      values[leaf] = leaf_value(s, leaf);
      enter(s, leaf, bounds_.loop_vars[s][leaf]);
    }
    ir::Stmt body = ir::make_seq(statements(s, values, reduces));
    for (size_t p = leaves.size(); p-- > 0;) {
      body = with_attached(s, leaves[p], body);
      body = loop(s, leaves[p], bounds_.loop_vars[s][leaves[p]], leaves[p] == outermost, body);
      if (p == init_position) body = ir::make_seq({init(s, p, values, outermost), body});
    }
    if (reduces && init_position == leaves.size())
      body = ir::make_seq({init(s, leaves.size(), values, outermost), body});
    ranges_ = outside;
    return body;
  }

  void enter(StageId s, IteratorId leaf, const ir::Var& var) {
    ranges_[var.get()] = {0, bounds_.stages[s].extents[leaf] - 1};
  }

  ir::Stmt with_attached(StageId s, IteratorId leaf, ir::Stmt body) {
    const auto& attached = attached_[s];
    for (size_t i = attached.size(); i-- > 0;) {
      if (schedule_.stages[attached[i]].attach_iterator == leaf) body = before(attached[i], body);
    }
    return body;
  }

  // Returns the global index of each root axis.
  std::vector<ir::Expr> root_values(StageId s, IdVector<IteratorId, ir::Expr> values) const {
    const sched::Stage& stage = schedule_.stages[s];
    sched::pass_up_values(stage, bounds_.stages[s].extents, values);
    std::vector<ir::Expr> roots;
    for (size_t r = 0; r < stage.num_roots(); ++r) {
      const ir::Expr& value = values[stage.root(r)];
      if (!value.defined()) {  // a reduce axis, in the init
        roots.emplace_back();
        continue;
      }
      roots.push_back(ir::simplify(bounds_.stages[s].root_min[r] + value, ranges_));
    }
    return roots;
  }

  std::vector<ir::Stmt> statements(StageId s, const IdVector<IteratorId, ir::Expr>& values, bool reduces) {
    const ir::Operation& op = *schedule_.stages[s].op;
    const std::vector<ir::Expr> roots = root_values(s, values);
    ir::VarMap map;
    for (size_t r = 0; r < roots.size(); ++r)
      map[(r < op.spatial.size() ? op.spatial[r] : op.reduce[r - op.spatial.size()]).var.get()] = roots[r];
    const std::vector<ir::Expr> indices(roots.begin(),
                                        roots.begin() + static_cast<std::ptrdiff_t>(op.spatial.size()));
    std::vector<ir::Stmt> stmts;
    for (size_t b = 0; b < op.bodies.size(); ++b) {
      ir::Expr value = ir::simplify(ir::substitute(op.bodies[b], map), ranges_);
      if (reduces && op.combiner != ir::Combiner::kArgMax && op.combiner != ir::Combiner::kArgMin)
        value = ir::combine(op.combiner, ir::load(op.outputs[b], indices), value);
      stmts.push_back(ir::make_store(op.outputs[b], indices, value));
    }
    return stmts;
  }

  // Spatial loops from `position` on, with their own variables, around the stores of the neutral
  // element.
  ir::Stmt init(StageId s, size_t position, IdVector<IteratorId, ir::Expr> values, IteratorId outermost) {
    const sched::Stage& stage = schedule_.stages[s];
    const ir::Operation& op = *stage.op;
    std::vector<std::pair<IteratorId, ir::Var>> loops;
    for (size_t p = position; p < stage.leaves.size(); ++p) {
      const IteratorId id = stage.leaves[p];
      if (stage.iterators[id].kind != sched::IterKind::kSpatial) {
        values[id] = ir::Expr();
        continue;
      }
      loops.emplace_back(id, ir::Var(stage.iterators[id].name + ".init"));
      enter(s, id, loops.back().second);
      if (!ir::is_int_value(values[id], 0)) values[id] = loops.back().second;
    }
    for (size_t p = 0; p < position; ++p) {
      const IteratorId id = stage.leaves[p];
      if (stage.iterators[id].kind != sched::IterKind::kSpatial) values[id] = ir::Expr();
    }
    const std::vector<ir::Expr> roots = root_values(s, values);
    const std::vector<ir::Expr> indices(roots.begin(),
                                        roots.begin() + static_cast<std::ptrdiff_t>(op.spatial.size()));
    std::vector<ir::Stmt> stmts;
    for (const ir::Buffer& output : op.outputs)
      stmts.push_back(ir::make_store(output, indices, ir::identity_of(op.combiner, output->dtype)));
    ir::Stmt body = ir::make_seq(std::move(stmts));
    for (size_t i = loops.size(); i-- > 0;)
      body = loop(s, loops[i].first, loops[i].second, loops[i].first == outermost, body);
    return body;
  }

  const sched::Schedule& schedule_;
  const sched::Bounds& bounds_;
  IdVector<StageId, std::vector<StageId>> attached_;
  ir::VarBounds ranges_;
};

}  // namespace

Result<ScheduleView> view_schedule(const sched::Schedule& schedule) {
  TS_ASSIGN_OR_RETURN(const sched::Bounds bounds, sched::infer_bounds(schedule));
  return Viewer(schedule, bounds).run();
}

}  // namespace tensorsmith::feature::testing

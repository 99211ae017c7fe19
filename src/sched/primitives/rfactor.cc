// rfactor(stage, iterator, factor_axis)
//   Arguments: a reduce leaf, and the position of the new axis among the spatial axes (0 .. number of them).
//   Rewrite: a new stage "NAME.rf" right before the stage has the leaf as a spatial axis and reduces over the
//     other reduce loops; the stage then reduces only over the new axis. Both start with fresh loops: "NAME.rf"
//     has the spatial axes, then the reduce axes that the leaf was not made of, then the other loops of those
//     that it was made of. The stage's number grows by one. Floats are added in another order.
//   Checks: a reduction over that leaf, computed at root, spatial loops untouched, nothing attached.
//
//     C[i] = sum_k A[i, k]  (k split in k.0, k.1)
//        rfactor k.1, 1  =>  C.rf[i, k.1] = sum_{k.0} A[i, k.0 * 4 + k.1]   (0 where k is beyond its extent)
//                            C[i] = sum_{k.1} C.rf[i, k.1]
#include <utility>

#include "ir/analysis.h"
#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"
#include "sched/relations.h"

namespace tensorsmith::sched::primitives {

namespace {

// Returns which iterators are connected with this one through splits and fuses.
IdVector<IteratorId, char> connected(const Stage& stage, IteratorId iterator) {
  IdVector<IteratorId, char> touched(stage.iterators.size(), 0);
  touched[iterator] = 1;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Relation& relation : stage.relations) {
      std::vector<IteratorId> members;
      if (const auto* split = std::get_if<SplitRelation>(&relation)) {
        members = split->children;
        members.push_back(split->parent);
      } else {
        const auto& fuse = std::get<FuseRelation>(relation);
        members = fuse.parents;
        members.push_back(fuse.child);
      }
      bool any = false;
      bool all = true;
      for (const IteratorId m : members) {
        any |= touched[m] != 0;
        all &= touched[m] != 0;
      }
      if (!any || all) continue;
      for (const IteratorId m : members) touched[m] = 1;
      changed = true;
    }
  }
  return touched;
}

// Returns an error if the step is not legal. `touched`: the iterators that are connected with the leaf.
Status check_rfactor(const Schedule& schedule, StageId s, IteratorId leaf,
                     const IdVector<IteratorId, char>& touched, int factor_axis) {
  const Stage& stage = schedule.stages[s];
  const ir::OperationRef& op = stage.op;
  const std::string name = "stage '" + op->name + "'";
  const std::string loop_name = stage.iterators[leaf].name;
  if (!op->has_reduction()) return illegal(name + " is not a reduction");
  if (stage.iterators[leaf].kind != IterKind::kReduce)
    return illegal("loop '" + loop_name + "' is not a reduce loop");
  const size_t rank = op->spatial.size();
  if (factor_axis < 0 || std::cmp_greater(factor_axis, rank))
    return invalid("factor_axis " + std::to_string(factor_axis) + " is not between 0 and " +
                   std::to_string(rank));
  if (stage.attach != AttachKind::kRoot)
    return illegal(name + " is attached to a loop; apply rfactor before compute_at");
  TS_RETURN_IF_ERROR(check_nothing_attached(schedule, s));
  for (const Iterator& it : stage.iterators) {
    if (it.annotation != Annotation::kNone)
      return illegal("loop '" + it.name + "' is annotated; apply rfactor before annotate");
  }
  if (stage.init_at.valid())
    return illegal("the init of " + name + " is placed; apply rfactor before the init is placed");
  if (stage.storage_align)
    return illegal("the storage of " + name + " is aligned; apply rfactor before storage_align");
  for (size_t a = 0; a < rank; ++a) {
    if (touched[stage.root(a)] != 0)
      return illegal("loop '" + loop_name + "' also comes from a spatial axis");
  }
  for (const Relation& relation : stage.relations) {
    const auto* split = std::get_if<SplitRelation>(&relation);
    const IteratorId member = split != nullptr ? split->parent : std::get<FuseRelation>(relation).child;
    const bool unit = split == nullptr && std::get<FuseRelation>(relation).parents.empty();
    if (stage.iterators[member].kind == IterKind::kSpatial && !unit)
      return illegal("the spatial loops of " + name + " were changed before; rfactor must come first");
  }
  return {};
}

// The axes of the new stage, which computes the partial results.
struct FactoredAxes {
  ir::Axis factor;               // spatial axis that the leaf becomes
  std::vector<ir::Axis> reduce;  // axes over which the new stage reduces
  ir::VarMap values;             // values of the original reduce axes that the leaf is a part of
  ir::Expr in_range;             // whether these values are within the extents; undefined if always
};

FactoredAxes factor_axes(const Stage& stage, IteratorId leaf, const IdVector<IteratorId, char>& touched) {
  const ir::Operation& op = *stage.op;
  const size_t rank = op.spatial.size();
  FactoredAxes axes;
  // Makes new axes for the loops that the leaf's root axes were split into.
  const IdVector<IteratorId, int64_t> extents = full_extents(stage);
  IdVector<IteratorId, ir::Expr> values(stage.iterators.size());
  for (size_t a = 0; a < op.reduce.size(); ++a) {
    if (touched[stage.root(rank + a)] == 0) axes.reduce.push_back(op.reduce[a]);
  }
  for (const IteratorId other : stage.leaves) {
    if (touched[other] == 0) continue;
    const ir::Axis axis{ir::Var(stage.iterators[other].name), extents[other]};
    values[other] = axis.var;
    if (other == leaf) {
      axes.factor = axis;
    } else {
      axes.reduce.push_back(axis);
    }
  }
  pass_up_values(stage, extents, values);
  for (size_t a = 0; a < op.reduce.size(); ++a) {
    const IteratorId root = stage.root(rank + a);
    if (touched[root] != 0) axes.values[op.reduce[a].var.get()] = values[root];
  }
  for (const IteratorId parent : overshooting(stage, extents)) {
    if (touched[parent] == 0) continue;
    const ir::Expr condition = values[parent] < ir::Expr(extents[parent]);
    axes.in_range = axes.in_range.defined() ? axes.in_range && condition : condition;
  }
  return axes;
}

// Makes the operation of the new stage.
std::shared_ptr<const ir::Operation> partial_operation(const ir::Operation& op, const std::string& name,
                                                       int factor_axis, FactoredAxes axes) {
  auto partial = std::make_shared<ir::Operation>();
  partial->name = name;
  partial->spatial = op.spatial;
  partial->spatial.insert(partial->spatial.begin() + factor_axis, axes.factor);
  partial->combiner = op.combiner;
  const bool arg = op.bodies.size() == 2;
  if (axes.reduce.empty() && arg) axes.reduce.push_back({ir::Var("unit"), 1});
  if (axes.reduce.empty()) partial->combiner = ir::Combiner::kNone;
  partial->reduce = std::move(axes.reduce);
  std::vector<int64_t> shape;
  for (const ir::Axis& axis : partial->spatial) shape.push_back(axis.extent);
  for (size_t b = 0; b < op.bodies.size(); ++b) {
    ir::Expr body = ir::substitute(op.bodies[b], axes.values);
    if (axes.in_range.defined()) {
      // Beyond the extent, the value is neutral, and the index loses against every other one.
      const ir::Expr neutral = b == 0 ? ir::identity_of(op.combiner, body.dtype())
                                      : ir::identity_of(ir::Combiner::kMin, body.dtype());
      body = ir::select(axes.in_range, body, neutral);
    }
    partial->bodies.push_back(body);
    partial->outputs.push_back(ir::make_buffer(b == 0 ? partial->name : partial->name + ".index",
                                               body.dtype(), shape, op.outputs[b]->scope));
  }
  return partial;
}

}  // namespace

Status apply(Schedule& schedule, const Rfactor& step) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, step.stage));
  const Stage& stage = schedule.stages[s];
  TS_ASSIGN_OR_RETURN(const IteratorId leaf, find_leaf(stage, step.iterator));
  const IdVector<IteratorId, char> touched = connected(stage, leaf);
  TS_RETURN_IF_ERROR(check_rfactor(schedule, s, leaf, touched, step.factor_axis));

  const ir::OperationRef op = stage.op;
  const FactoredAxes axes = factor_axes(stage, leaf, touched);
  const auto partial =
      partial_operation(*op, unique_name(schedule, op->name + ".rf"), step.factor_axis, axes);
  auto final_op = std::make_shared<ir::Operation>(*op);
  final_op->spatial = fresh_axes(op->spatial);
  const ir::Axis repeated{ir::Var(stage.iterators[leaf].name), axes.factor.extent};
  final_op->reduce = {repeated};
  std::vector<ir::Expr> indices = axis_values(final_op->spatial);
  indices.insert(indices.begin() + step.factor_axis, repeated.var);
  final_op->bodies.clear();
  for (const ir::Buffer& buffer : partial->outputs) final_op->bodies.push_back(ir::load(buffer, indices));

  Stage rest = Stage::create(std::move(final_op));
  rest.layout = stage.layout;
  rest.scope = stage.scope;
  rest.auto_unroll_max_step = stage.auto_unroll_max_step;
  schedule.stages[s] = std::move(rest);
  insert_stage(schedule, s, Stage::create(partial));
  return {};
}

}  // namespace tensorsmith::sched::primitives

#include "lower/nest.h"

#include <algorithm>
#include <ranges>

namespace tensorsmith::lower {

using ir::Expr;
using ir::Stmt;
using sched::Annotation;
using sched::FuseRelation;
using sched::IterKind;
using sched::SplitRelation;

namespace {

bool is_arg(ir::Combiner c) { return c == ir::Combiner::kArgMax || c == ir::Combiner::kArgMin; }

void append(std::vector<Stmt>& list, Stmt s) {
  if (s != nullptr) list.push_back(std::move(s));
}
Stmt sequence(std::vector<Stmt> list) {
  if (list.empty()) return nullptr;
  return list.size() == 1 ? std::move(list.front()) : ir::make_seq(std::move(list));
}

}  // namespace

NestBuilder::NestBuilder(const sched::Schedule& schedule, const sched::Bounds& bounds,
                         const StorageMap& storage)
    : schedule_(schedule), bounds_(bounds), storage_(storage) {
  const size_t n = schedule.stages.size();
  infos_.resize(n);
  leaf_values_.resize(n);
  root_min_.resize(n);
  overreach_.resize(n);
  for (const StageId s : schedule.stages.ids()) {
    const sched::Stage& stage = schedule.stages[s];
    if (stage.is_placeholder() || stage.attach == sched::AttachKind::kInlined) continue;
    leaf_values_[s].resize(stage.iterators.size());
    root_min_[s].resize(stage.num_roots());
    if (stage.attach != sched::AttachKind::kAt) continue;
    const auto position = schedule.stages[stage.attach_stage].leaf_position(stage.attach_iterator);
    StageInfo& around = info(stage.attach_stage);
    around.attached[*position].push_back(s);
    if (contains_shared(s)) around.shared_position = std::max(around.shared_position, *position + 1);
  }
  load_writer_ = [this](const ir::Load& load, std::vector<Index> indices) {
    return write_load(load, std::move(indices));
  };
}

NestBuilder::StageInfo& NestBuilder::info(StageId s) {
  StageInfo& out = infos_[s];
  if (out.ready) return out;
  const sched::Stage& stage = schedule_.stages[s];
  const auto& extents = bounds_.stages[s].extents;
  out.ready = true;
  out.depth.assign(stage.iterators.size(), 0);
  out.made_into.assign(stage.iterators.size(), nullptr);
  out.attached.resize(stage.leaves.size());
  for (size_t p = 0; p < stage.leaves.size(); ++p) {
    if (extents[stage.leaves[p]] != 1) out.depth[stage.leaves[p]] = p + 1;
  }
  for (const sched::Relation& relation : std::views::reverse(stage.relations)) {
    if (const auto* split = std::get_if<SplitRelation>(&relation)) {
      out.made_into[split->parent] = &relation;
      for (const IteratorId child : split->children) {
        out.depth[split->parent] = std::max(out.depth[split->parent], out.depth[child]);
      }
    } else {
      const auto& fuse = std::get<FuseRelation>(relation);
      for (const IteratorId parent : fuse.parents) {
        out.made_into[parent] = &relation;
        out.depth[parent] = extents[parent] == 1 ? 0 : out.depth[fuse.child];
      }
    }
  }
  out.init_position = stage.leaves.size();
  for (size_t p = stage.leaves.size(); p-- > 0;) {
    if (stage.iterators[stage.leaves[p]].kind != IterKind::kSpatial) out.init_position = p;
  }
  if (const auto position = stage.leaf_position(stage.init_at))
    out.init_position = std::min(out.init_position, *position);
  return out;
}

Stmt NestBuilder::root_stage(StageId s) { return stage(s, 0); }

int64_t NestBuilder::inner_product(StageId s, const SplitRelation& split, size_t child) const {
  int64_t product = 1;
  for (size_t k = child + 1; k < split.children.size(); ++k) {
    product *= bounds_.stages[s].extents[split.children[k]];
  }
  return product;
}

Index NestBuilder::value_of(StageId s, IteratorId iterator) {
  const sched::Relation* relation = info(s).made_into[iterator];
  if (relation == nullptr) return leaf_value(s, iterator);
  const auto& extents = bounds_.stages[s].extents;
  if (const auto* split = std::get_if<SplitRelation>(relation)) {
    Index sum;
    for (const IteratorId child : split->children) sum = sum * extents[child] + value_of(s, child);
    if (!shifts(s, *split)) return sum;
    const Index start = value_of(s, split->children[0]) * inner_product(s, *split, 0);
    return sum - start + arena_.minimum(start, extents[iterator] - inner_product(s, *split, 0));
  }
  const auto& fuse = std::get<FuseRelation>(*relation);
  if (extents[iterator] == 1) return 0;
  Index rest = value_of(s, fuse.child);
  for (size_t k = fuse.parents.size(); k-- > 0;) {
    const int64_t extent = extents[fuse.parents[k]];
    if (fuse.parents[k] == iterator) return arena_.resolve(k == 0 ? rest : arena_.floormod(rest, extent));
    rest = arena_.floordiv(rest, extent);
  }
  throw_internal_error(__FILE__, __LINE__, "a fused loop lacks the iterator among its parents");
}

Index NestBuilder::region_min(StageId s, size_t root) {
  const Expr& min = bounds_.stages[s].root_min[root];
  if (const auto value = ir::as_int(min)) return *value;
  Bindings bindings;
  // The variables in scope are those of the stages around the attach point.
  const sched::Stage* inner = &schedule_.stages[s];
  while (inner->attach == sched::AttachKind::kAt) {
    const StageId target = inner->attach_stage;
    const sched::Stage& around = schedule_.stages[target];
    for (const IteratorId leaf : around.leaves) {
      bindings.emplace_back(bounds_.loop_vars[target][leaf].get(), leaf_value(target, leaf));
      if (leaf == inner->attach_iterator) break;
    }
    inner = &around;
  }
  return arena_.resolve(Rewriter(arena_, bindings, load_writer_).index(min));
}

Stmt NestBuilder::stage(StageId s, int peels) {
  const sched::Stage& stage = schedule_.stages[s];
  const sched::StageBounds& b = bounds_.stages[s];
  info(s);
  for (size_t a = 0; a < stage.num_roots(); ++a) {
    root_min_[s][a] = region_min(s, a);
    if (b.root_may_leave[a] != 0 && !sched::fills_region(schedule_, s) && root_min_[s][a].is_constant() &&
        root_min_[s][a].constant >= axis_extent(s, a))
      return nullptr;
  }
  Overreach& over = overreach_[s];
  over.axes = overreach_candidates(s);
  while (true) {
    over.failed.assign(over.axes.size(), 0);
    const IndexArena::Mark mark = arena_.mark();
    Stmt body = whole_or_guarded(s, initial_state(s, peels));
    if (std::find(over.failed.begin(), over.failed.end(), 1) == over.failed.end()) return body;
    arena_.rollback(mark);
    for (size_t a = 0; a < over.axes.size(); ++a)
      over.axes[a] = over.axes[a] != 0 && over.failed[a] == 0 ? 1 : 0;
  }
}

int64_t NestBuilder::axis_extent(StageId s, size_t root) const {
  const ir::Operation& op = *schedule_.stages[s].op;
  return root < op.spatial.size() ? op.spatial[root].extent : op.reduce[root - op.spatial.size()].extent;
}

NestBuilder::State NestBuilder::init_state(StageId s, const State& state) {
  const sched::Stage& stage = schedule_.stages[s];
  State init = state;
  init.init = true;
  std::erase_if(init.constraints, [&](const Constraint& c) {
    return stage.iterators[c.split->parent].kind == IterKind::kReduce;
  });
  std::erase_if(init.guards,
                [&](const Guard& g) { return stage.iterators[g.iterator].kind == IterKind::kReduce; });
  return init;
}

// Builds everything inside the loops at positions [0, position).
Stmt NestBuilder::nest(StageId s, State state, size_t position) {
  Stmt result;
  if (resolve_constraints(s, state, position, result)) return result;
  const sched::Stage& stage = schedule_.stages[s];
  const StageInfo& facts = info(s);
  struct Attached {
    StageId stage;
    Stmt body;
  };
  std::vector<Attached> attached;
  const auto build_attached = [&] {
    if (position == 0 || state.init) return;
    for (const StageId a : facts.attached[position - 1]) attached.push_back({a, this->stage(a, state.peels)});
  };
  // Attached stages are built outside the guards if all threads must reach them.
  const bool guards_inside = position > 0 && position == facts.shared_position;
  if (guards_inside) build_attached();
  const IndexArena::Mark mark = arena_.mark();
  std::vector<IndexArena::Saved> restricted;
  Expr condition;
  if (!take_guards(s, state, position, condition, restricted)) {
    for (size_t k = restricted.size(); k-- > 0;) arena_.restore(restricted[k]);
    return nullptr;
  }
  if (!guards_inside) build_attached();
  std::vector<Stmt> list;
  if (stage.op->has_reduction() && !state.init && position == facts.init_position) {
    append(list, nest(s, init_state(s, state), position));
  }
  if (position == stage.leaves.size()) {
    append(list, innermost(s, state.init));
  } else {
    append(list, open_leaf(s, std::move(state), position));
  }
  Stmt body = sequence(std::move(list));
  if (guards_inside && body != nullptr && condition.defined()) {
    body = ir::make_if(std::move(condition), std::move(body));
    condition = {};
  }
  if (body != nullptr) {
    for (size_t k = attached.size(); k-- > 0;) {
      if (attached[k].body != nullptr) body = ir::make_seq({attached[k].body, std::move(body)});
      for (const ir::Buffer& out : schedule_.stages[attached[k].stage].op->outputs) {
        body = ir::make_allocate(storage_.at(out.get()).buffer, std::move(body));
      }
    }
  }
  for (size_t k = restricted.size(); k-- > 0;) arena_.restore(restricted[k]);
  arena_.rollback(mark);
  if (body != nullptr && condition.defined()) body = ir::make_if(std::move(condition), std::move(body));
  return body;
}

namespace {

bool is_gpu_thread(Annotation a) {
  return a == Annotation::kThreadX || a == Annotation::kThreadY || a == Annotation::kThreadZ;
}

}  // namespace

// All loops of a kernel over its threads have the same extent; a stage that needs fewer threads is
// guarded.
Stmt NestBuilder::thread_loop(StageId s, State state, size_t position) {
  const IteratorId leaf = schedule_.stages[s].leaves[position];
  const int64_t extent = bounds_.stages[s].extents[leaf];
  if (state.limits[leaf] < extent) state.guards.push_back({leaf, 0, 0, state.limits[leaf]});
  for (size_t k = state.constraints.size(); k-- > 0;) {
    Constraint& c = state.constraints[k];
    if (c.split->children[c.child] != leaf) continue;
    const int64_t inner = inner_product(s, *c.split, c.child);
    const Index full = arena_.floordiv(c.rest, inner), rest = arena_.floormod(c.rest, inner);
    if (arena_.range(full).min < extent) {
      const bool whole = full.is_constant() && rest.is_constant() && rest.constant == 0;
      if (!whole) {
        to_guard(state, k);
        continue;
      }
      state.guards.push_back({leaf, 0, 0, full.constant});
    }
    state.constraints.erase(std::next(state.constraints.begin(), k));
  }
  return loop(s, std::move(state), position, extent, extent);
}

Stmt NestBuilder::open_leaf(StageId s, State state, size_t position) {
  const sched::Stage& stage = schedule_.stages[s];
  const IteratorId leaf = stage.leaves[position];
  const sched::Iterator& iterator = stage.iterators[leaf];
  if (state.init && iterator.kind == IterKind::kReduce) {
    // The init does not depend on reduce loops; no spatial axis uses the value.
    leaf_values_[s][leaf] = 0;
    return nest(s, std::move(state), position + 1);
  }
  if (is_gpu_thread(iterator.annotation)) return thread_loop(s, std::move(state), position);
  int64_t extent = state.limits[leaf];
  // Guards on the loop's own variable become a smaller extent.
  std::erase_if(state.guards, [&](const Guard& g) {
    if (g.iterator != leaf || !g.base.is_constant() || g.base.constant < g.lower) return false;
    extent = std::min(extent, g.upper - g.base.constant);
    return true;
  });
  for (size_t k = 0; k < state.constraints.size(); ++k) {
    Constraint& c = state.constraints[k];
    const SplitRelation& split = *c.split;
    if (split.children[c.child] != leaf) continue;
    const int64_t inner = inner_product(s, split, c.child);
    const Index full = arena_.floordiv(c.rest, inner);
    const Index rest = arena_.floormod(c.rest, inner);
    const bool no_tail = rest.is_constant() && rest.constant == 0;
    const ir::Interval r = arena_.range(full);
    const auto drop = [&](State& from) { from.constraints.erase(std::next(from.constraints.begin(), k)); };
    if (r.min >= extent) {
      drop(state);
      break;
    }
    if (r.max < extent) extent = no_tail ? r.max : r.max + 1;
    const bool peel = split.tail != sched::TailPolicy::kPredicate;
    if (no_tail && full.is_constant()) {
      drop(state);
      break;
    }
    const bool serial = iterator.annotation == Annotation::kNone;
    if (peel && defer(s, c)) {  // decided inside the loop
      if (!serial) break;
      const Index needed = arena_.floordiv(c.rest + (inner - 1), inner);
      return loop(s, std::move(state), position, extent, needed);
    }
    if (peel && no_tail && serial) {
      drop(state);
      return loop(s, std::move(state), position, extent, full);
    }
    const bool cut = serial || (iterator.annotation == Annotation::kUnroll && full.is_constant());
    const bool branch = iterator.annotation == Annotation::kParallel;
    if (!peel || (!cut && !branch && extent > 1) || state.peels >= kMaxPeels || !rest.is_constant() ||
        r.min < 0) {
      to_guard(state, k);
      break;
    }
    if (!cut || extent == 1) break;  // decided inside the loop
    State main = state;
    drop(main);
    ++main.peels;
    ++c.child;
    c.rest = rest;
    ++state.peels;
    std::vector<Stmt> list;
    append(list, loop(s, std::move(main), position, extent, full));
    leaf_values_[s][leaf] = full;
    if (r.max < extent) {
      append(list, nest(s, std::move(state), position + 1));
    } else {
      // The tail is executed only if the loop ended early.
      const IndexArena::Mark mark = arena_.mark();
      arena_.learn_not_positive(full - extent + 1);
      Stmt tail = nest(s, std::move(state), position + 1);
      arena_.rollback(mark);
      if (tail != nullptr)
        append(list, ir::make_if(arena_.compare(ir::BinaryOp::kLt, full - extent), std::move(tail)));
    }
    return sequence(std::move(list));
  }
  return loop(s, std::move(state), position, extent, extent);
}

namespace {

// For a loop whose whole body is guarded for its first steps: returns the number of these steps, if
// there are two or more. A shorter loop needs no masks if it is vectorized, and its accumulators
// can stay in registers.
std::optional<int64_t> guarded_steps(const ir::For& loop) {
  const auto* guard = ir::as<ir::IfThenElse>(loop.body);
  if (guard == nullptr || guard->else_body != nullptr) return std::nullopt;
  const auto* less = ir::as<ir::Binary>(guard->condition);
  if (less == nullptr || less->op != ir::BinaryOp::kLt) return std::nullopt;
  const auto* variable = ir::as<ir::VarRef>(less->a);
  const auto* steps = ir::as<ir::IntImm>(less->b);
  if (variable == nullptr || variable->var != loop.var || steps == nullptr || steps->value < 2)
    return std::nullopt;
  return steps->value;
}

}  // namespace

Stmt NestBuilder::loop(StageId s, State state, size_t position, int64_t extent, const Index& fewer) {
  const ir::Interval needed = arena_.range(fewer);
  extent = std::min(extent, needed.max);
  if (extent <= 0) return nullptr;
  const bool varies = needed.min < extent;
  const sched::Stage& stage = schedule_.stages[s];
  const IteratorId leaf = stage.leaves[position];
  const sched::Iterator& iterator = stage.iterators[leaf];
  const ir::ForKind kind = sched::loop_kind(iterator.annotation);
  if (extent == 1 && !varies && kind != ir::ForKind::kThread) {
    leaf_values_[s][leaf] = 0;
    return nest(s, std::move(state), position + 1);
  }
  ir::For out;
  out.var = ir::Var(iterator.name);
  out.extent = varies ? arena_.to_expr(arena_.minimum(fewer, extent)) : Expr(extent);
  out.kind = kind;
  out.thread = sched::thread_axis(iterator.annotation);
  if (state.outermost) out.auto_unroll_max_step = stage.auto_unroll_max_step;
  state.outermost = false;
  const IndexArena::Mark mark = arena_.mark();
  leaf_values_[s][leaf] = arena_.loop(out.var, extent);
  if (varies) arena_.learn_not_positive(leaf_values_[s][leaf] - fewer + 1);
  out.body = nest(s, std::move(state), position + 1);
  arena_.rollback(mark);
  leaf_values_[s][leaf] = 0;
  if (out.body == nullptr) return nullptr;
  if (const auto first = guarded_steps(out); first && !varies && kind != ir::ForKind::kThread) {
    out.extent = *first;
    out.body = ir::as<ir::IfThenElse>(out.body)->then_body;
  }
  return ir::make_for(std::move(out));
}

std::vector<Expr> NestBuilder::physical(const StoragePlan& plan, std::vector<Index> logical) {
  std::vector<Expr> out;
  if (plan.layout != nullptr) {
    out.reserve(plan.layout->size());
    const std::vector<ir::Axis>& axes = schedule_.stages[plan.stage].op->spatial;
    for (const sched::LayoutDim& d : *plan.layout) {
      const size_t dim = d.dim;
      Index digit = arena_.floordiv(logical[dim], d.divisor);
      // The top digit is within its extent because the index is within the tensor.
      if (axes[dim].extent > d.divisor * d.extent) digit = arena_.floormod(digit, d.extent);
      out.push_back(arena_.to_expr(d.extent == 1 ? Index(0) : digit));
    }
    return out;
  }
  out.reserve(logical.size());
  for (size_t k = 0; k < logical.size(); ++k) {
    out.push_back(
        arena_.to_expr(arena_.resolve(plan.shrunk ? logical[k] - root_min_[plan.stage][k] : logical[k])));
  }
  return out;
}

Expr NestBuilder::write_load(const ir::Load& load, std::vector<Index> indices) {
  const StoragePlan& plan = storage_.at(load.buffer.get());
  check_overreach(load, plan, indices);
  return ir::load(plan.buffer, physical(plan, std::move(indices)));
}

Stmt NestBuilder::store(const ir::Buffer& logical, const std::vector<Index>& point, Expr value) {
  const StoragePlan& plan = storage_.at(logical.get());
  return ir::make_store(plan.buffer, physical(plan, point), std::move(value));
}

// Builds the statement inside all loops of the stage.
Stmt NestBuilder::innermost(StageId s, bool init) {
  const ir::Operation& op = *schedule_.stages[s].op;
  std::vector<Index> point;
  Bindings bindings;
  for (size_t a = 0; a < op.spatial.size(); ++a) {
    point.push_back(arena_.resolve(root_min_[s][a] + value_of(s, IteratorId(a))));
    bindings.emplace_back(op.spatial[a].var.get(), point.back());
  }
  if (init) {
    const ir::Buffer& out = op.output();
    Stmt value = store(out, point, ir::identity_of(op.combiner, out->dtype));
    if (!is_arg(op.combiner)) return value;
    // The largest index loses every tie.
    const ir::Buffer& index = op.outputs[1];
    return ir::make_seq({store(index, point, ir::identity_of(ir::Combiner::kMin, index->dtype)), value});
  }
  for (size_t r = 0; r < op.reduce.size(); ++r) {
    const size_t a = op.spatial.size() + r;
    bindings.emplace_back(op.reduce[r].var.get(), value_of(s, IteratorId(a)));
  }
  writing_ = s;
  Rewriter rewriter(arena_, bindings, load_writer_);
  const Expr next =
      rewriter.value(sched::fills_region(schedule_, s) ? filled(s, op.bodies[0]) : op.bodies[0]);
  if (!op.has_reduction()) return store(op.output(), point, next);
  const auto current = [&](const ir::Buffer& logical) {
    const StoragePlan& plan = storage_.at(logical.get());
    return ir::load(plan.buffer, physical(plan, point));
  };
  const Expr best = current(op.output());
  if (!is_arg(op.combiner)) return store(op.output(), point, ir::combine(op.combiner, best, next));
  const Expr index = rewriter.value(op.bodies[1]);
  const Expr best_index = current(op.outputs[1]);
  const bool is_max = op.combiner == ir::Combiner::kArgMax;
  Expr better = is_max ? next > best : next < best;
  Expr equal = next == best;
  if (ir::is_float(next.dtype())) {  // the first NaN is kept
    const Expr next_nan = ir::call(ir::Intrinsic::kIsNan, {next});
    const Expr best_nan = ir::call(ir::Intrinsic::kIsNan, {best});
    better = better || (next_nan && !best_nan);
    equal = equal || (next_nan && best_nan);
  }
  const Expr wins = better || (equal && index < best_index);
  // The index is stored first, because its choice compares with the value stored so far.
  return ir::make_seq({store(op.outputs[1], point, ir::select(wins, index, best_index)),
                       store(op.output(), point, ir::select(better, next, best))});
}

}  // namespace tensorsmith::lower

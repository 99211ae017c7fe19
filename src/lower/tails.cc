// Tails of splits and borders of regions: limits, constraints, guards.
#include <algorithm>

#include "ir/linear.h"
#include "lower/nest.h"

namespace tensorsmith::lower {

using ir::Expr;
using ir::Stmt;
using sched::Annotation;
using sched::FuseRelation;
using sched::SplitRelation;

// Guards inside a reduction would keep accumulators out of registers even for regions inside the
// tensor, so those get a nest of their own.
Stmt NestBuilder::whole_or_guarded(StageId s, State state) {
  // All threads of a block must reach shared stages, whether their own region is inside or not.
  if (!schedule_.stages[s].op->has_reduction() || state.peels >= kMaxPeels || contains_shared(s))
    return nest(s, std::move(state), 0);
  State whole = state;
  whole.guards.clear();
  std::vector<Index> needs;  // the region is inside if all are below 0
  for (Guard& g : state.guards) {
    if (g.base.is_constant()) {
      whole.guards.push_back(g);
      continue;
    }
    const int64_t last = whole.limits[g.iterator] - 1;
    for (const Index& need : {g.base + last - g.upper, g.lower - g.base - 1}) {
      const ir::Interval r = arena_.range(need);
      if (r.min >= 0) return nest(s, std::move(state), 0);  // never
      if (r.max >= 0) needs.push_back(need);
    }
  }
  if (needs.empty()) return nest(s, std::move(state), 0);
  ++whole.peels, ++state.peels;
  const IndexArena::Mark mark = arena_.mark();
  Expr condition;
  for (const Index& need : needs) {
    const Expr e = arena_.compare(ir::BinaryOp::kLt, need);
    condition = condition.defined() ? condition && e : e;
    arena_.learn_not_positive(need + 1);
  }
  Stmt inside = nest(s, std::move(whole), 0);
  arena_.rollback(mark);
  Stmt guarded = nest(s, std::move(state), 0);
  if (inside == nullptr) return guarded;
  return ir::make_if(std::move(condition), std::move(inside), std::move(guarded));
}

NestBuilder::State NestBuilder::initial_state(StageId s, int peels) {
  const sched::Stage& stage = schedule_.stages[s];
  const sched::StageBounds& b = bounds_.stages[s];
  Overreach& over = overreach_[s];
  over.partial.assign(stage.num_roots(), 0);
  State state;
  state.peels = peels;
  state.limits = b.extents;
  for (size_t a = 0; a < stage.num_roots(); ++a) {
    if (b.root_may_leave[a] == 0 || sched::fills_region(schedule_, s)) continue;
    const IteratorId axis = stage.root(a);
    const int64_t extent = axis_extent(s, a);
    const Index& min = root_min_[s][a];
    const bool reach = a < over.axes.size() && over.axes[a] != 0;
    if (min.is_constant()) {
      int64_t needed = extent - min.constant;
      if (reach) needed = round_to_lanes(s, a, needed);
      state.limits[axis] = std::min(state.limits[axis], needed);
      if (min.constant < 0) state.guards.push_back({axis, min, 0, extent});
    } else if (!reach) {
      state.guards.push_back({axis, min, 0, extent});
    }
    if (!reach || min.is_constant()) over.partial[a] = 1;
  }
  for (const sched::Relation& relation : stage.relations) {
    if (const auto* split = std::get_if<SplitRelation>(&relation)) {
      const int64_t limit = state.limits[split->parent];
      const int64_t inner = inner_product(s, *split, 0);
      int64_t& outer_limit = state.limits[split->children[0]];
      if (inner * b.extents[split->children[0]] <= limit || shifts(s, *split) || overruns(s, *split))
        continue;
      outer_limit = std::min(outer_limit, (limit + inner - 1) / inner);
      if (limit % inner != 0) state.constraints.push_back({split, 0, limit, split->parent, limit});
    } else {
      const auto& fuse = std::get<FuseRelation>(relation);
      for (size_t k = 0; k < fuse.parents.size(); ++k) {
        const IteratorId parent = fuse.parents[k];
        const int64_t limit = state.limits[parent];
        if (limit >= b.extents[parent]) continue;
        if (k == 0) {
          state.limits[fuse.child] = b.extents[fuse.child] / b.extents[parent] * limit;
        } else {
          state.guards.push_back({parent, 0, 0, limit});
        }
      }
    }
  }
  return state;
}

void NestBuilder::to_guard(State& state, size_t constraint) {
  const Constraint c = state.constraints[constraint];
  state.constraints.erase(std::next(state.constraints.begin(), constraint));
  state.guards.push_back({c.iterator, 0, 0, c.limit});
}

bool NestBuilder::resolve_constraints(StageId s, State& state, size_t position, Stmt& result) {
  const StageInfo& facts = info(s);
  for (size_t k = 0; k < state.constraints.size();) {
    Constraint& c = state.constraints[k];
    descend(s, c);
    const SplitRelation& split = *c.split;
    const IteratorId child = split.children[c.child];
    if (facts.depth[child] > position) {
      ++k;
      continue;
    }
    const int64_t inner = inner_product(s, split, c.child);
    const Index full = arena_.floordiv(c.rest, inner);
    const Index rest = arena_.floormod(c.rest, inner);
    const Index v = value_of(s, child);
    const ir::Interval r = arena_.range(v - full);
    if (r.max < 0) {
      state.constraints.erase(std::next(state.constraints.begin(), k));
      continue;
    }
    const bool no_tail = rest.is_constant() && rest.constant == 0;
    if (r.min > 0 || (r.min == 0 && no_tail)) {
      result = nullptr;
      return true;
    }
    if (r.min == 0 && r.max == 0) {
      ++c.child;
      c.rest = rest;
      continue;
    }
    if (split.tail != sched::TailPolicy::kPredicate && defer(s, c)) {
      c.rest = c.rest - v * inner;
      ++c.child;
      continue;
    }
    if (split.tail == sched::TailPolicy::kPredicate || state.peels >= kMaxPeels || !rest.is_constant()) {
      to_guard(state, k);
      continue;
    }
    State main = state;
    State tail = std::move(state);
    main.constraints.erase(std::next(main.constraints.begin(), k));
    if (!no_tail) ++main.peels, ++tail.peels;
    const auto branch = [&](State branch_state, const ir::Interval& difference) {
      const IndexArena::Mark mark = arena_.mark();
      IndexArena::Saved saved;
      if (full.is_constant()) {
        saved = arena_.restrict_to(v, ir::add(difference, ir::Interval::point(full.constant)));
      }
      arena_.learn_not_positive(v - full - difference.max);
      if (difference.min == difference.max) arena_.learn_not_positive(full + difference.min - v);
      Stmt body = nest(s, std::move(branch_state), position);
      arena_.restore(saved);
      arena_.rollback(mark);
      return body;
    };
    Stmt main_body = r.min < 0 ? branch(std::move(main), {ir::Interval::kNegInf, -1}) : nullptr;
    Stmt tail_body;
    if (!no_tail) {
      ++tail.constraints[k].child;
      tail.constraints[k].rest = rest;
      tail_body = branch(std::move(tail), {0, 0});
      if (tail_body != nullptr && r.max > 0) {
        tail_body = ir::make_if(arena_.compare(ir::BinaryOp::kEq, v - full), tail_body);
      }
    }
    if (main_body != nullptr) {
      result = ir::make_if(arena_.compare(ir::BinaryOp::kLt, v - full), main_body, tail_body);
    } else if (tail_body != nullptr) {
      result = r.min < 0 ? ir::make_if(arena_.compare(ir::BinaryOp::kGe, v - full), tail_body) : tail_body;
    }
    return true;
  }
  return false;
}

// If only the last child is left, the constraint applies to the split of that child.
void NestBuilder::descend(StageId s, Constraint& c) const {
  while (c.child + 1 == c.split->children.size()) {
    const sched::Relation* made_into = infos_[s].made_into[c.split->children[c.child]];
    const auto* split = made_into == nullptr ? nullptr : std::get_if<SplitRelation>(made_into);
    if (split == nullptr) return;
    c.split = split;
    c.child = 0;
  }
}

bool NestBuilder::defer(StageId s, const Constraint& c) const {
  const sched::Stage& stage = schedule_.stages[s];
  const SplitRelation& split = *c.split;
  // At the last child nothing could be cut: its own loop would have a varying length.
  if (c.child + 2 >= split.children.size()) return false;
  const IteratorId next = split.children[c.child + 1];
  const StageInfo& facts = infos_[s];
  return facts.made_into[next] == nullptr && stage.iterators[next].annotation == Annotation::kNone &&
         facts.depth[next] > facts.depth[split.children[c.child]];
}

bool NestBuilder::take_guards(StageId s, State& state, size_t position, Expr& condition,
                              std::vector<IndexArena::Saved>& restricted) {
  const StageInfo& facts = info(s);
  const auto add = [&](Expr e) { condition = condition.defined() ? condition && e : e; };
  std::vector<Guard> later;
  for (Guard& g : state.guards) {
    if (std::max(facts.depth[g.iterator], facts.shared_position) > position) {
      later.push_back(std::move(g));
      continue;
    }
    const Index v = arena_.resolve(g.base + value_of(s, g.iterator));
    // Both are below 0 if the guard holds.
    for (const Index& need : {arena_.less_than_zero(v - g.upper), g.lower - v - 1}) {
      const ir::Interval r = arena_.range(need);
      if (r.max < 0) continue;
      if (r.min >= 0) return false;
      add(arena_.compare(ir::BinaryOp::kLt, need));
      arena_.learn_not_positive(need + 1);
    }
    restricted.push_back(arena_.restrict_to(v, {g.lower, g.upper - 1}));
  }
  state.guards = std::move(later);
  return true;
}

}  // namespace tensorsmith::lower

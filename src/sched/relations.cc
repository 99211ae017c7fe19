#include "sched/relations.h"

#include <algorithm>

namespace tensorsmith::sched {

namespace {

// A product saturates far above any tensor's size, so that unreasonable thread counts do not
// overflow.
int64_t saturating_product(int64_t a, int64_t b) {
  constexpr int64_t kLimit = int64_t{1} << 60;
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) || product > kLimit ? kLimit : product;
}

int64_t ceil_div(int64_t a, int64_t b) { return b <= 1 ? a : (a + b - 1) / b; }

// Returns the length that one step of a split's outermost loop covers.
int64_t tile_length(const SplitRelation& split, const IdVector<IteratorId, int64_t>& extents) {
  int64_t tile = 1;
  for (size_t k = 1; k < split.children.size(); ++k)
    tile = saturating_product(tile, extents[split.children[k]]);
  return tile;
}

// Returns for each iterator whether some loop made of it is bound to a GPU axis. Empty if none is.
IdVector<IteratorId, char> thread_bound(const Stage& stage) {
  IdVector<IteratorId, char> bound;
  for (const IteratorId leaf : stage.leaves) {
    if (!bound_to_gpu(stage.iterators[leaf].annotation)) continue;
    if (bound.empty()) bound.assign(stage.iterators.size(), 0);
    bound[leaf] = 1;
  }
  if (bound.empty()) return bound;
  for (auto it = stage.relations.rbegin(); it != stage.relations.rend(); ++it) {
    if (const auto* split = std::get_if<SplitRelation>(&*it)) {
      for (const IteratorId child : split->children) bound[split->parent] |= bound[child];
    } else {
      const auto& fuse = std::get<FuseRelation>(*it);
      for (const IteratorId parent : fuse.parents) bound[parent] |= bound[fuse.child];
    }
  }
  return bound;
}

}  // namespace

void pass_down_extents(const Stage& stage, IdVector<IteratorId, int64_t>& extents) {
  extents.resize(stage.iterators.size(), 1);
  const IdVector<IteratorId, char> bound = thread_bound(stage);
  for (const Relation& relation : stage.relations) {
    if (const auto* split = std::get_if<SplitRelation>(&relation)) {
      int64_t rest = extents[split->parent];
      const size_t n = split->children.size();
      for (size_t i = 0; i + 1 < n; ++i) {
        const size_t k = split->outer_lengths ? i : n - 1 - i;
        const IteratorId child = split->children[k];
        const int64_t wish = split->lengths[split->outer_lengths ? k : k - 1];
        constexpr int64_t kMostThreads = 65536;
        const bool threads = !bound.empty() && bound[child] != 0;
        const int64_t length = std::min(wish, threads ? std::max(rest, kMostThreads) : rest);
        extents[child] = length;
        rest = ceil_div(rest, length);
      }
      extents[split->outer_lengths ? split->children.back() : split->children.front()] = rest;
    } else {
      const auto& fuse = std::get<FuseRelation>(relation);
      int64_t product = 1;
      for (const IteratorId parent : fuse.parents) product = saturating_product(product, extents[parent]);
      extents[fuse.child] = product;
    }
  }
}

IdVector<IteratorId, int64_t> full_extents(const Stage& stage) {
  IdVector<IteratorId, int64_t> extents;
  extents.reserve(stage.iterators.size());
  for (const ir::Axis& axis : stage.op->spatial) extents.push_back(axis.extent);
  for (const ir::Axis& axis : stage.op->reduce) extents.push_back(axis.extent);
  pass_down_extents(stage, extents);
  return extents;
}

void pass_up_values(const Stage& stage, const IdVector<IteratorId, int64_t>& extents,
                    IdVector<IteratorId, ir::Expr>& values) {
  values.resize(stage.iterators.size());
  for (auto it = stage.relations.rbegin(); it != stage.relations.rend(); ++it) {
    if (const auto* split = std::get_if<SplitRelation>(&*it)) {
      ir::Expr sum;
      for (const IteratorId child : split->children) {
        const ir::Expr& value = values[child];
        if (!value.defined()) {
          sum = {};
          break;
        }
        sum = sum.defined() ? sum * ir::Expr(extents[child]) + value : value;
      }
      if (sum.defined()) values[split->parent] = sum;
    } else {
      const auto& fuse = std::get<FuseRelation>(*it);
      ir::Expr rest = values[fuse.child];
      if (!rest.defined()) continue;
      for (size_t k = fuse.parents.size(); k-- > 0;) {
        const IteratorId parent = fuse.parents[k];
        const ir::Expr extent(extents[parent]);
        values[parent] = k == 0 ? rest : ir::floormod(rest, extent);
        if (k > 0) rest = ir::floordiv(rest, extent);
      }
    }
  }
}

bool shifts_last_tile(const Stage& stage, const SplitRelation& split,
                      const IdVector<IteratorId, int64_t>& extents, const std::vector<uint8_t>& may_leave) {
  if (split.tail != TailPolicy::kShift || stage.op->has_reduction()) return false;
  const size_t axis = split.parent.place();
  if (axis >= stage.num_roots() || may_leave[axis] != 0) return false;
  const IteratorId outer = split.children.front();
  if (!stage.leaf_position(outer)) return false;
  const Annotation annotation = stage.iterators[outer].annotation;
  if (annotation != Annotation::kNone && annotation != Annotation::kUnroll) return false;
  const int64_t tile = tile_length(split, extents), extent = extents[split.parent];
  return extent > tile && extent % tile != 0;
}

bool may_overrun(const Stage& stage, const SplitRelation& split, const IdVector<IteratorId, int64_t>& extents,
                 const std::vector<uint8_t>& may_leave) {
  if (split.tail != TailPolicy::kOverrun || stage.attach != AttachKind::kAt || stage.op->has_reduction())
    return false;
  const size_t axis = split.parent.place();
  if (axis >= stage.op->spatial.size() || may_leave[axis] != 0) return false;
  return extents[split.parent] % tile_length(split, extents) != 0;
}

ir::MemoryScope memory_scope(const Schedule& schedule, StageId s) {
  const Stage& stage = schedule.stages[s];
  if (stage.scope != ir::MemoryScope::kGlobal || stage.attach != AttachKind::kAt) return stage.scope;
  const bool shares_work = std::any_of(stage.leaves.begin(), stage.leaves.end(), [&](IteratorId leaf) {
    return is_block_thread(stage.iterators[leaf].annotation);
  });
  ir::MemoryScope out = ir::MemoryScope::kGlobal;
  for (const Stage* at = &stage; at->attach == AttachKind::kAt; at = &schedule.stages[at->attach_stage]) {
    const Stage& target = schedule.stages[at->attach_stage];
    for (const IteratorId leaf : target.leaves) {
      const Annotation annotation = target.iterators[leaf].annotation;
      if (is_thread(annotation)) return shares_work ? ir::MemoryScope::kShared : ir::MemoryScope::kLocal;
      if (is_block(annotation)) out = ir::MemoryScope::kShared;
      if (leaf == at->attach_iterator) break;
    }
  }
  return out;
}

bool fills_region(const Schedule& schedule, StageId s) {
  const Stage& stage = schedule.stages[s];
  return stage.attach == AttachKind::kAt && !stage.op->has_reduction() &&
         memory_scope(schedule, s) == ir::MemoryScope::kShared;
}

std::vector<IteratorId> overshooting(const Stage& stage, const IdVector<IteratorId, int64_t>& extents) {
  std::vector<IteratorId> result;
  for (const Relation& relation : stage.relations) {
    const auto* split = std::get_if<SplitRelation>(&relation);
    if (split == nullptr) continue;
    int64_t product = 1;
    for (const IteratorId child : split->children) product = saturating_product(product, extents[child]);
    if (product > extents[split->parent]) result.push_back(split->parent);
  }
  return result;
}

}  // namespace tensorsmith::sched

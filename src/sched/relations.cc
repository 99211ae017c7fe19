#include "sched/relations.h"

#include <algorithm>

namespace tensorsmith::sched {

namespace {

size_t index(int i) { return static_cast<size_t>(i); }

bool bound_to_gpu(Annotation a) { return a >= Annotation::kVThread; }

// Absurd thread counts must not overflow: a product saturates far above any tensor.
int64_t saturating_product(int64_t a, int64_t b) {
  constexpr int64_t kLimit = int64_t{1} << 60;
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) || product > kLimit ? kLimit : product;
}

int64_t ceil_div(int64_t a, int64_t b) { return b <= 1 ? a : (a + b - 1) / b; }

// What one step of the outermost loop of a split takes.
int64_t tile_length(const SplitRelation& split, const std::vector<int64_t>& extents) {
  int64_t tile = 1;
  for (size_t k = 1; k < split.children.size(); ++k)
    tile = saturating_product(tile, extents[index(split.children[k])]);
  return tile;
}

// By iterator: some loop made of it is bound to a GPU axis. Empty if none is.
std::vector<char> thread_bound(const Stage& stage) {
  std::vector<char> bound;
  for (int leaf : stage.leaves) {
    if (!bound_to_gpu(stage.iterators[index(leaf)].annotation)) continue;
    if (bound.empty()) bound.assign(stage.iterators.size(), 0);
    bound[index(leaf)] = 1;
  }
  if (bound.empty()) return bound;
  for (auto it = stage.relations.rbegin(); it != stage.relations.rend(); ++it) {
    if (const auto* split = std::get_if<SplitRelation>(&*it)) {
      for (int child : split->children) bound[index(split->parent)] |= bound[index(child)];
    } else {
      const auto& fuse = std::get<FuseRelation>(*it);
      for (int parent : fuse.parents) bound[index(parent)] |= bound[index(fuse.child)];
    }
  }
  return bound;
}

}  // namespace

void pass_down_extents(const Stage& stage, std::vector<int64_t>& extents) {
  extents.resize(stage.iterators.size(), 1);
  const std::vector<char> bound = thread_bound(stage);
  for (const Relation& relation : stage.relations) {
    if (const auto* split = std::get_if<SplitRelation>(&relation)) {
      int64_t rest = extents[index(split->parent)];
      const size_t n = split->children.size();
      for (size_t i = 0; i + 1 < n; ++i) {
        const size_t k = split->outer_lengths ? i : n - 1 - i;
        const int child = split->children[k];
        const int64_t wish = split->lengths[split->outer_lengths ? k : k - 1];
        constexpr int64_t kMostThreads = 65536;
        const bool threads = !bound.empty() && bound[index(child)] != 0;
        const int64_t length = std::min(wish, threads ? std::max(rest, kMostThreads) : rest);
        extents[index(child)] = length;
        rest = ceil_div(rest, length);
      }
      extents[index(split->outer_lengths ? split->children.back() : split->children.front())] = rest;
    } else {
      const auto& fuse = std::get<FuseRelation>(relation);
      int64_t product = 1;
      for (int parent : fuse.parents) product = saturating_product(product, extents[index(parent)]);
      extents[index(fuse.child)] = product;
    }
  }
}

std::vector<int64_t> full_extents(const Stage& stage) {
  std::vector<int64_t> extents;
  extents.reserve(stage.iterators.size());
  for (const ir::Axis& axis : stage.op->spatial) extents.push_back(axis.extent);
  for (const ir::Axis& axis : stage.op->reduce) extents.push_back(axis.extent);
  pass_down_extents(stage, extents);
  return extents;
}

void pass_up_values(const Stage& stage, const std::vector<int64_t>& extents, std::vector<ir::Expr>& values) {
  values.resize(stage.iterators.size());
  for (auto it = stage.relations.rbegin(); it != stage.relations.rend(); ++it) {
    if (const auto* split = std::get_if<SplitRelation>(&*it)) {
      ir::Expr sum;
      for (int child : split->children) {
        const ir::Expr& value = values[index(child)];
        if (!value.defined()) {
          sum = {};
          break;
        }
        sum = sum.defined() ? sum * ir::Expr(extents[index(child)]) + value : value;
      }
      if (sum.defined()) values[index(split->parent)] = sum;
    } else {
      const auto& fuse = std::get<FuseRelation>(*it);
      ir::Expr rest = values[index(fuse.child)];
      if (!rest.defined()) continue;
      for (size_t k = fuse.parents.size(); k-- > 0;) {
        const int parent = fuse.parents[k];
        const ir::Expr extent(extents[index(parent)]);
        values[index(parent)] = k == 0 ? rest : ir::floormod(rest, extent);
        if (k > 0) rest = ir::floordiv(rest, extent);
      }
    }
  }
}

bool shifts_last_tile(const Stage& stage, const SplitRelation& split, const std::vector<int64_t>& extents,
                      const std::vector<uint8_t>& may_leave) {
  if (split.tail != TailPolicy::kShift || stage.op->has_reduction()) return false;
  if (index(split.parent) >= stage.num_roots() || may_leave[index(split.parent)] != 0) return false;
  const int outer = split.children.front();
  if (stage.leaf_position(outer) < 0) return false;
  const Annotation annotation = stage.iterators[index(outer)].annotation;
  if (annotation != Annotation::kNone && annotation != Annotation::kUnroll) return false;
  const int64_t tile = tile_length(split, extents), extent = extents[index(split.parent)];
  return extent > tile && extent % tile != 0;
}

bool may_overrun(const Stage& stage, const SplitRelation& split, const std::vector<int64_t>& extents,
                 const std::vector<uint8_t>& may_leave) {
  if (split.tail != TailPolicy::kOverrun || stage.attach != AttachKind::kAt || stage.op->has_reduction())
    return false;
  if (index(split.parent) >= stage.op->spatial.size() || may_leave[index(split.parent)] != 0) return false;
  return extents[index(split.parent)] % tile_length(split, extents) != 0;
}

std::vector<int> overshooting(const Stage& stage, const std::vector<int64_t>& extents) {
  std::vector<int> result;
  for (const Relation& relation : stage.relations) {
    const auto* split = std::get_if<SplitRelation>(&relation);
    if (split == nullptr) continue;
    int64_t product = 1;
    for (int child : split->children) product = saturating_product(product, extents[index(child)]);
    if (product > extents[index(split->parent)]) result.push_back(split->parent);
  }
  return result;
}

}  // namespace tensorsmith::sched

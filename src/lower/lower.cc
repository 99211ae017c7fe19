#include "lower/lower.h"

#include <algorithm>
#include <ranges>
#include <span>

#include "ir/simplify.h"
#include "lower/nest.h"

namespace tensorsmith::lower {

namespace {

using sched::AttachKind;

int64_t align_up(int64_t value, int64_t factor, int64_t offset) {
  const int64_t over = ((value - offset) % factor + factor) % factor;
  return over == 0 ? value : value + factor - over;
}

std::vector<int64_t> aligned_strides(const sched::Stage& stage, const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (stage.root(d) == stage.storage_align_iterator) {
      stride = align_up(stride, stage.storage_align->first, stage.storage_align->second);
    }
    strides[d] = stride;
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

std::vector<int64_t> layout_shape(const sched::Layout& layout) {
  std::vector<int64_t> shape;
  shape.reserve(layout.size());
  for (const sched::LayoutDim& d : layout) shape.push_back(d.extent);
  return shape;
}

// Returns the root axis that the iterator is the innermost part of, or none.
std::optional<size_t> axis_of_innermost(const sched::Stage& stage, sched::IteratorId iterator) {
  for (const sched::Relation& relation : std::views::reverse(stage.relations)) {
    const auto* split = std::get_if<sched::SplitRelation>(&relation);
    if (split == nullptr) {
      if (std::get<sched::FuseRelation>(relation).child == iterator) return std::nullopt;
    } else if (split->children.back() == iterator) {
      iterator = split->parent;
    } else if (std::find(split->children.begin(), split->children.end(), iterator) != split->children.end()) {
      return std::nullopt;
    }
  }
  return iterator.place();
}

// Returns whether all dimensions after `axis` have extent 1.
bool is_last_dimension(size_t axis, const std::vector<int64_t>& shape) {
  const auto rest = std::span(shape).subspan(axis + 1);
  return std::all_of(rest.begin(), rest.end(), [](int64_t n) { return n == 1; });
}

// Returns whether vectors are stored as adjacent columns: the loop directly around the vectorized
// one is unrolled and runs along the innermost axis. Such a stage is transposed in registers and
// stored in rows.
bool stores_transposed(const sched::Stage& stage, size_t vector_leaf, const std::vector<int64_t>& shape) {
  if (vector_leaf == 0 || stage.op->has_reduction()) return false;
  const sched::IteratorId around = stage.leaves[vector_leaf - 1];
  if (stage.iterators[around].annotation != sched::Annotation::kUnroll) return false;
  const auto axis = axis_of_innermost(stage, around);
  return axis && *axis < shape.size() && is_last_dimension(*axis, shape);
}

// Returns the strides of a local tile, whose layout nothing outside the schedule sees: the axis of
// the vectorized loop becomes innermost, so that vectors are contiguous. Empty if row-major order
// already does that, or if the schedule stores rows.
std::vector<int64_t> tile_strides(const sched::Stage& stage, const std::vector<int64_t>& shape) {
  size_t leaf = stage.leaves.size();
  while (leaf > 0 && stage.iterators[stage.leaves[leaf - 1]].annotation != sched::Annotation::kVectorize)
    --leaf;
  if (leaf == 0) return {};
  const auto axis = axis_of_innermost(stage, stage.leaves[--leaf]);
  if (!axis || *axis >= shape.size()) return {};
  const size_t v = *axis;
  if (shape[v] <= 1 || is_last_dimension(v, shape) || stores_transposed(stage, leaf, shape)) return {};
  std::vector<int64_t> strides(shape.size());
  strides[v] = 1;
  int64_t stride = shape[v];
  for (size_t d = shape.size(); d-- > 0;) {
    if (d == v) continue;
    strides[d] = stride;
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

class ProgramBuilder {
 public:
  ProgramBuilder(const sched::Schedule& schedule, const sched::Bounds& bounds)
      : schedule_(schedule), bounds_(bounds) {}

  LoweredProgram build(std::string name) {
    LoweredProgram out;
    out.program.name = std::move(name);
    out.program.outputs = schedule_.outputs;
    for (const sched::StageId s : schedule_.stages.ids()) plan(s, out);
    NestBuilder nests(schedule_, bounds_, storage_);
    for (const sched::StageId s : schedule_.stages.ids()) {
      const sched::Stage& stage = schedule_.stages[s];
      if (stage.is_placeholder() || stage.attach != AttachKind::kRoot) continue;
      roots_.push_back(s);
      bodies_.push_back(nests.root_stage(s));
    }
    find_lifetimes();
    out.program.body = sequence(0, roots_.size());
    return out;
  }

 private:
  void plan(sched::StageId s, LoweredProgram& out) {
    const sched::Stage& stage = schedule_.stages[s];
    if (stage.attach == AttachKind::kInlined) return;
    for (const ir::Buffer& logical : stage.op->outputs) {
      StoragePlan p;
      p.stage = s;
      p.buffer = logical;
      if (stage.layout) p.layout = &*stage.layout;
      const bool is_output =
          std::find(schedule_.outputs.begin(), schedule_.outputs.end(), logical) != schedule_.outputs.end();
      if (stage.is_placeholder()) {
        if (stage.layout)
          p.buffer = ir::make_buffer(logical->name, logical->dtype, layout_shape(*stage.layout));
        if (stage.layout || stage.transform)
          out.prepared.push_back({out.program.inputs.size(), stage.transform, stage.layout});
        out.program.inputs.push_back(p.buffer);
      } else if (!is_output) {
        p.allocated = true;
        std::vector<int64_t> shape = logical->shape;
        if (stage.layout) shape = layout_shape(*stage.layout);
        if (stage.attach == AttachKind::kAt) {
          p.shrunk = true;
          const auto extents = std::span(bounds_.stages[s].root_extent).first(shape.size());
          shape.assign(extents.begin(), extents.end());
          make_room_for_tails(s, shape);
        }
        std::vector<int64_t> strides;
        if (stage.storage_align) {
          strides = aligned_strides(stage, shape);
        } else if (!stage.layout) {
          strides = tile_strides(stage, shape);
        }
        // A tensor that several loop nests of the program use cannot be private to a thread.
        const ir::MemoryScope scope =
            stage.attach == AttachKind::kRoot ? ir::MemoryScope::kGlobal : sched::memory_scope(schedule_, s);
        p.buffer =
            ir::make_buffer(logical->name, logical->dtype, std::move(shape), scope, std::move(strides));
      }
      storage_[logical.get()] = std::move(p);
    }
  }

  // Rounds the shape up to whole tiles where the last tile may run beyond the region.
  void make_room_for_tails(sched::StageId s, std::vector<int64_t>& shape) const {
    const sched::Stage& stage = schedule_.stages[s];
    const sched::StageBounds& b = bounds_.stages[s];
    for (const sched::Relation& relation : stage.relations) {
      const auto* split = std::get_if<sched::SplitRelation>(&relation);
      if (split == nullptr || !sched::may_overrun(stage, *split, b.extents, b.root_may_leave)) continue;
      int64_t room = 1;
      for (const sched::IteratorId child : split->children) room *= b.extents[child];
      shape[split->parent.place()] = room;
    }
  }

  // Sets last_use_[k] to one past the last root nest that reads the results of nest k (at least k +
  // 1).
  void find_lifetimes() {
    last_use_.resize(roots_.size());
    std::unordered_map<const ir::BufferNode*, size_t> writer;
    for (size_t k = 0; k < roots_.size(); ++k) {
      last_use_[k] = k + 1;
      for (const ir::Buffer& out : schedule_.stages[roots_[k]].op->outputs) writer[out.get()] = k;
    }
    for (const sched::StageId s : schedule_.stages.ids()) {
      const sched::Stage& reader = schedule_.stages[s];
      if (reader.attach == AttachKind::kInlined || reader.is_placeholder()) continue;
      sched::StageId root = s;
      while (schedule_.stages[root].attach == AttachKind::kAt) root = schedule_.stages[root].attach_stage;
      size_t nest = 0;
      while (roots_[nest] != root) ++nest;
      for (const sched::Reads::Tensor& read : reader.reads->tensors()) {
        if (const auto it = writer.find(read.buffer); it != writer.end()) {
          last_use_[it->second] = std::max(last_use_[it->second], nest + 1);
        }
      }
    }
  }

  // Returns nests [begin, end) in order, with each intermediate allocated around its uses (and
  // around those of other intermediates allocated inside).
  ir::Stmt sequence(size_t begin, size_t end) const {
    std::vector<ir::Stmt> list;
    for (size_t k = begin; k < end;) {
      std::vector<ir::Buffer> allocated;
      for (const ir::Buffer& out : schedule_.stages[roots_[k]].op->outputs) {
        if (const StoragePlan& p = storage_.at(out.get()); p.allocated) allocated.push_back(p.buffer);
      }
      if (allocated.empty()) {
        if (bodies_[k] != nullptr) list.push_back(bodies_[k]);
        ++k;
        continue;
      }
      size_t last = last_use_[k];
      for (size_t j = k + 1; j < last; ++j) last = std::max(last, last_use_[j]);
      std::vector<ir::Stmt> inner;
      if (bodies_[k] != nullptr) inner.push_back(bodies_[k]);
      if (ir::Stmt rest = sequence(k + 1, last)) inner.push_back(std::move(rest));
      if (!inner.empty()) {
        ir::Stmt body = ir::make_seq(std::move(inner));
        for (size_t b = allocated.size(); b-- > 0;) body = ir::make_allocate(allocated[b], std::move(body));
        list.push_back(std::move(body));
      }
      k = last;
    }
    return list.empty() ? nullptr : ir::make_seq(std::move(list));
  }

  const sched::Schedule& schedule_;
  const sched::Bounds& bounds_;
  StorageMap storage_;
  std::vector<sched::StageId> roots_;
  std::vector<ir::Stmt> bodies_;  // bodies of the root stages
  std::vector<size_t> last_use_;
};

}  // namespace

Result<LoweredProgram> lower(const sched::Schedule& schedule, std::string name) {
  TS_ASSIGN_OR_RETURN(const sched::Bounds bounds, sched::infer_bounds(schedule));
  return ProgramBuilder(schedule, bounds).build(std::move(name));
}

}  // namespace tensorsmith::lower

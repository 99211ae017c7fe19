#include "lower/lower.h"

#include <algorithm>

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
    if (static_cast<int>(d) == stage.storage_align_iterator) {
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

// The root axis whose innermost part an iterator is, -1 if it is none's.
int axis_of_innermost(const sched::Stage& stage, int iterator) {
  for (size_t r = stage.relations.size(); iterator >= 0 && r-- > 0;) {
    const auto* split = std::get_if<sched::SplitRelation>(&stage.relations[r]);
    if (split == nullptr) {
      if (std::get<sched::FuseRelation>(stage.relations[r]).child == iterator) return -1;
    } else if (split->children.back() == iterator) {
      iterator = split->parent;
    } else if (std::find(split->children.begin(), split->children.end(), iterator) != split->children.end()) {
      return -1;
    }
  }
  return iterator;
}

// Vectors beside each other: the loop right around the vectorized one is unrolled and runs along the
// innermost axis. Such a stage is transposed in registers and stored in rows.
bool stores_transposed(const sched::Stage& stage, size_t vector_leaf, const std::vector<int64_t>& shape) {
  if (vector_leaf == 0 || stage.op->has_reduction()) return false;
  const int around = stage.leaves[vector_leaf - 1];
  if (stage.iterators[static_cast<size_t>(around)].annotation != sched::Annotation::kUnroll) return false;
  const int axis = axis_of_innermost(stage, around);
  return axis >= 0 && static_cast<size_t>(axis) < shape.size() &&
         std::all_of(shape.begin() + axis + 1, shape.end(), [](int64_t n) { return n == 1; });
}

// A local tile is private to the schedule, so its storage follows its use: the axis along which it is
// computed in vectors is innermost, that vectors of it are contiguous. Empty: row-major already is that, or
// the schedule asks for rows.
std::vector<int64_t> tile_strides(const sched::Stage& stage, const std::vector<int64_t>& shape) {
  size_t leaf = stage.leaves.size();
  while (leaf > 0 && stage.iterators[static_cast<size_t>(stage.leaves[leaf - 1])].annotation !=
                         sched::Annotation::kVectorize)
    --leaf;
  if (leaf == 0) return {};
  const int axis = axis_of_innermost(stage, stage.leaves[--leaf]);
  if (axis < 0 || static_cast<size_t>(axis) >= shape.size()) return {};
  const auto v = static_cast<size_t>(axis);
  if (shape[v] <= 1 || std::all_of(shape.begin() + axis + 1, shape.end(), [](int64_t n) { return n == 1; }) ||
      stores_transposed(stage, leaf, shape))
    return {};
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
    for (size_t s = 0; s < schedule_.stages.size(); ++s) plan(s, out);
    NestBuilder nests(schedule_, bounds_, storage_);
    for (size_t s = 0; s < schedule_.stages.size(); ++s) {
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
  void plan(size_t s, LoweredProgram& out) {
    const sched::Stage& stage = schedule_.stages[s];
    if (stage.attach == AttachKind::kInlined) return;
    for (const ir::Buffer& logical : stage.op->outputs) {
      StoragePlan p;
      p.stage = static_cast<int>(s);
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
          const auto& extents = bounds_.stages[s].root_extent;
          shape.assign(extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(shape.size()));
          make_room_for_tails(s, shape);
        }
        std::vector<int64_t> strides;
        if (stage.storage_align) {
          strides = aligned_strides(stage, shape);
        } else if (!stage.layout) {
          strides = tile_strides(stage, shape);
        }
        // What all loop nests of the program see is no thread's own.
        const ir::MemoryScope scope =
            stage.attach == AttachKind::kRoot ? ir::MemoryScope::kGlobal : stage.scope;
        p.buffer =
            ir::make_buffer(logical->name, logical->dtype, std::move(shape), scope, std::move(strides));
      }
      storage_[logical.get()] = std::move(p);
    }
  }

  // Whole tiles where the last one may run beyond the region.
  void make_room_for_tails(size_t s, std::vector<int64_t>& shape) const {
    const sched::Stage& stage = schedule_.stages[s];
    const sched::StageBounds& b = bounds_.stages[s];
    for (const sched::Relation& relation : stage.relations) {
      const auto* split = std::get_if<sched::SplitRelation>(&relation);
      if (split == nullptr || !sched::may_overrun(stage, *split, b.extents, b.root_may_leave)) continue;
      int64_t room = 1;
      for (const int child : split->children) room *= b.extents[static_cast<size_t>(child)];
      shape[static_cast<size_t>(split->parent)] = room;
    }
  }

  // last_use_[k] = one past the last root nest that reads what nest k computes (at least k + 1).
  void find_lifetimes() {
    last_use_.resize(roots_.size());
    std::unordered_map<const ir::BufferNode*, size_t> writer;
    for (size_t k = 0; k < roots_.size(); ++k) {
      last_use_[k] = k + 1;
      for (const ir::Buffer& out : schedule_.stages[roots_[k]].op->outputs) writer[out.get()] = k;
    }
    for (size_t s = 0; s < schedule_.stages.size(); ++s) {
      const sched::Stage& reader = schedule_.stages[s];
      if (reader.attach == AttachKind::kInlined || reader.is_placeholder()) continue;
      size_t root = s;
      while (schedule_.stages[root].attach == AttachKind::kAt) {
        root = static_cast<size_t>(schedule_.stages[root].attach_stage);
      }
      const auto nest = static_cast<size_t>(std::find(roots_.begin(), roots_.end(), root) - roots_.begin());
      for (const sched::Reads::Tensor& read : reader.reads->tensors()) {
        if (const auto it = writer.find(read.buffer); it != writer.end()) {
          last_use_[it->second] = std::max(last_use_[it->second], nest + 1);
        }
      }
    }
  }

  // Nests [begin, end) in order, each intermediate allocated around its uses (and those of what is allocated
  // inside).
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
  std::vector<size_t> roots_;     // stages
  std::vector<ir::Stmt> bodies_;  // of the roots
  std::vector<size_t> last_use_;
};

}  // namespace

Result<LoweredProgram> lower(const sched::Schedule& schedule, std::string name) {
  TS_ASSIGN_OR_RETURN(const sched::Bounds bounds, sched::infer_bounds(schedule));
  return ProgramBuilder(schedule, bounds).build(std::move(name));
}

}  // namespace tensorsmith::lower

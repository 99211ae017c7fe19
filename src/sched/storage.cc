#include "sched/storage.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <span>

#include "sched/relations.h"

namespace tensorsmith::sched {

namespace {

int64_t align_up(int64_t value, int64_t factor, int64_t offset) {
  const int64_t over = ((value - offset) % factor + factor) % factor;
  return over == 0 ? value : value + factor - over;
}

std::vector<int64_t> aligned_strides(const Stage& stage, const std::vector<int64_t>& shape) {
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

// Returns the root axis that the iterator is the innermost part of, or none.
std::optional<size_t> axis_of_innermost(const Stage& stage, IteratorId iterator) {
  for (const Relation& relation : std::views::reverse(stage.relations)) {
    const auto* split = std::get_if<SplitRelation>(&relation);
    if (split == nullptr) {
      if (std::get<FuseRelation>(relation).child == iterator) return std::nullopt;
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
bool stores_transposed(const Stage& stage, size_t vector_leaf, const std::vector<int64_t>& shape) {
  if (vector_leaf == 0 || stage.op->has_reduction()) return false;
  const IteratorId around = stage.leaves[vector_leaf - 1];
  if (stage.iterators[around].annotation != Annotation::kUnroll) return false;
  const auto axis = axis_of_innermost(stage, around);
  return axis && *axis < shape.size() && is_last_dimension(*axis, shape);
}

// Returns the strides of a local tile, whose layout nothing outside the schedule sees: the axis of
// the vectorized loop becomes innermost, so that vectors are contiguous. Empty if row-major order
// already does that, or if the schedule stores rows.
std::vector<int64_t> tile_strides(const Stage& stage, const std::vector<int64_t>& shape) {
  size_t leaf = stage.leaves.size();
  while (leaf > 0 && stage.iterators[stage.leaves[leaf - 1]].annotation != Annotation::kVectorize) --leaf;
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

// Rounds the shape up to whole tiles where the last tile may run beyond the region.
void make_room_for_tails(const Stage& stage, const StorageExtents& bounds, std::vector<int64_t>& shape) {
  for (const Relation& relation : stage.relations) {
    const auto* split = std::get_if<SplitRelation>(&relation);
    if (split == nullptr || !may_overrun(stage, *split, bounds.extents, bounds.root_may_leave)) continue;
    int64_t room = 1;
    for (const IteratorId child : split->children) room *= bounds.extents[child];
    shape[split->parent.place()] = room;
  }
}

// Returns whether several threads run the place where the stage is computed, each with its own storage.
bool inside_parallel_loop(const Schedule& schedule, const RegionInference& regions, StageId s) {
  while (schedule.stages[s].attach == AttachKind::kAt) {
    const Stage& stage = schedule.stages[s];
    const Stage& target = schedule.stages[stage.attach_stage];
    for (const IteratorId leaf : target.leaves) {
      if (target.iterators[leaf].annotation == Annotation::kParallel &&
          regions.stage(stage.attach_stage).extents[leaf] > 1)
        return true;
      if (leaf == stage.attach_iterator) break;
    }
    s = stage.attach_stage;
  }
  return false;
}

}  // namespace

std::vector<int64_t> layout_shape(const Layout& layout) {
  std::vector<int64_t> shape;
  shape.reserve(layout.size());
  for (const LayoutDim& d : layout) shape.push_back(d.extent);
  return shape;
}

Storage storage_of(const Stage& stage, const ir::BufferNode& output, const StorageExtents& extents) {
  Storage storage;
  storage.shape = stage.layout ? layout_shape(*stage.layout) : output.shape;
  if (stage.attach == AttachKind::kAt) {
    const auto region = std::span(extents.root_extent).first(storage.shape.size());
    storage.shape.assign(region.begin(), region.end());
    make_room_for_tails(stage, extents, storage.shape);
  }
  if (stage.storage_align) {
    storage.strides = aligned_strides(stage, storage.shape);
  } else if (!stage.layout) {
    storage.strides = tile_strides(stage, storage.shape);
  }
  return storage;
}

int64_t temporary_bytes(const Schedule& schedule, const RegionInference& regions,
                        const target::Device& device) {
  const bool gpu = device.kind() == target::DeviceKind::kGpu;
  int64_t total = 0;
  for (const StageId s : schedule.stages.ids()) {
    const Stage& stage = schedule.stages[s];
    if (stage.is_placeholder() || stage.attach == AttachKind::kInlined) continue;
    // A GPU keeps the tensors of attached stages on the chip.
    if (gpu && stage.attach == AttachKind::kAt) continue;
    const int64_t copies = inside_parallel_loop(schedule, regions, s) ? device.compute_units() : 1;
    const StageRegion& region = regions.stage(s);
    for (const ir::Buffer& output : stage.op->outputs) {
      if (std::find(schedule.outputs.begin(), schedule.outputs.end(), output) != schedule.outputs.end())
        continue;
      Storage storage =
          storage_of(stage, *output, {region.extents, region.root_extent, region.root_may_leave});
      ir::BufferNode stored;
      stored.shape = std::move(storage.shape);
      stored.strides = std::move(storage.strides);
      total += copies * ir::bytes_of(output->dtype, stored.allocation_elements());
    }
  }
  return total;
}

Result<int64_t> temporary_bytes(const ir::Workload& workload, const Trace& trace,
                                const target::Device& device) {
  TS_ASSIGN_OR_RETURN(const Schedule schedule, replay(workload, trace));
  RegionInference regions;
  TS_RETURN_IF_ERROR(regions.run(schedule));
  return temporary_bytes(schedule, regions, device);
}

}  // namespace tensorsmith::sched

// The accesses of one store: which elements they touch as more and more loops run.
#include <algorithm>
#include <cstdlib>

#include "feature/store_collector.h"

namespace tensorsmith::feature {

IndexId StoreCollector::add_index(const Form& form) {
  Index index;
  index.form = form;
  // The value while no loop runs.
  index.range = {form.constant, form.constant};
  for (const FormArena::Term& t : forms_.terms(form)) {
    const FormArena::Atom& atom = forms_.atom(t);
    index.loops |= atom.loops;
    index.simple = index.simple && atom.kind == FormArena::Kind::kVariable;
  }
  if (!index.simple) index.range = forms_.range_from(form, kMaxLoops);
  const IndexId id = indices_.push_back(index);
  pending_.push_back(id);
  return id;
}

void StoreCollector::add_access(StoredBufferId buffer, bool write, size_t count) {
  Access* access = nullptr;
  for (Access& a : accesses_) {
    if (a.buffer == buffer) access = &a;
  }
  // A store that also reads its buffer updates the same element.
  if (access != nullptr && access->type != AccessType::kRead) {
    access->type = AccessType::kReadWrite;
    pending_.clear();
    return;
  }
  if (access == nullptr) {
    accesses_.push_back({buffer, write ? AccessType::kWrite : AccessType::kRead, {}, {}, 0, 1});
    access = &accesses_.back();
  }
  const size_t rank = pending_.size() / count;
  for (size_t i = 0; i < count; ++i) {
    const TupleId tuple = tuples_.push_back({tuple_indices_.size() + i * rank, {}});
    if (!access->first_tuple.valid()) {
      access->first_tuple = tuple;
    } else {
      tuples_[access->last_tuple].next = tuple;
    }
    access->last_tuple = tuple;
  }
  for (const IndexId index : pending_) access->loops |= indices_[index].loops;
  tuple_indices_.insert(tuple_indices_.end(), pending_.begin(), pending_.end());
  pending_.clear();
}

// Extends the ranges by loop `level`; levels are entered from the innermost outwards.
void StoreCollector::enter_level(size_t level) {
  const uint64_t bit = uint64_t{1} << level;
  const int64_t last = loops_[level].extent - 1;
  for (Index& index : indices_) {
    if ((index.loops & bit) == 0) continue;
    if (!index.simple) {
      index.range = forms_.range_from(index.form, level);
      continue;
    }
    for (const FormArena::Term& t : forms_.terms(index.form)) {
      if (forms_.atom(t).depth != level) continue;
      int64_t reach = 0;
      if (__builtin_mul_overflow(t.coefficient, last, &reach)) reach = kUnknownBound;
      int64_t& end = reach >= 0 ? index.range.max : index.range.min;
      end = std::clamp(end + std::clamp(reach, -kUnknownBound, kUnknownBound), -kUnknownBound, kUnknownBound);
    }
  }
}

// Fills dims_ for all accesses of the store.
void StoreCollector::collect_dims() {
  dims_.clear();
  dim_indices_.clear();
  for (Access& access : accesses_) {
    access.first_dim = dims_.size();
    const size_t rank = buffers_[access.buffer].shape.size();
    for (size_t d = 0; d < rank; ++d) {
      const size_t begin = dim_indices_.size();
      IndexId last;
      for (TupleId t = access.first_tuple; t.valid(); t = tuples_[t].next) {
        const IndexId index = tuple_indices_[tuples_[t].first + d];
        if (index == last) continue;
        last = index;
        const auto found = std::span(dim_indices_).subspan(begin);
        if (std::find(found.begin(), found.end(), index) == found.end()) dim_indices_.push_back(index);
      }
      dims_.push_back({begin, dim_indices_.size() - begin});
    }
  }
}

// Returns the elements of the box around all tuples of the access while the loops entered so far
// run, and appends its extents to `lengths` unless null.
int64_t StoreCollector::box_of(const Access& access, std::vector<int64_t>* lengths) const {
  const BufferInfo& buffer = buffers_[access.buffer];
  int64_t elements = 1;
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    const Dim& dim = dims_[access.first_dim + d];
    ValueRange box = indices_[dim_indices_[dim.begin]].range;
    for (size_t i = 1; i < dim.count; ++i) {
      const ValueRange& other = indices_[dim_indices_[dim.begin + i]].range;
      box = {std::min(box.min, other.min), std::max(box.max, other.max)};
    }
    const bool known = box.min > -kUnknownBound && box.max < kUnknownBound;
    const int64_t length = known ? box.max - box.min + 1 : buffer.shape[d];
    if (__builtin_mul_overflow(elements, length, &elements)) elements = kUnknownBound;
    if (lengths != nullptr) lengths->push_back(length);
  }
  return std::max<int64_t>(elements, 0);
}

// Fills shape_ from the accesses reported: the elements that one execution of each loop touches,
// from the innermost loop outwards, and the loops that move each access.
void StoreCollector::measure() {
  shape_.accesses.clear();
  shape_.elements.clear();
  shape_.written_region.clear();
  collect_dims();
  for (Access& access : accesses_) access.elements = box_of(access, nullptr);
  for (size_t level = loops_.size(); level-- > 0;) {
    enter_level(level);
    for (Access& access : accesses_) {
      if ((access.loops >> level & 1) != 0) access.elements = box_of(access, nullptr);
      shape_.elements.push_back(access.elements);
    }
  }
  box_of(accesses_[0], &shape_.written_region);
  for (const Access& access : accesses_) {
    StoreShape::Access out;
    out.node = buffers_[access.buffer].node;
    out.buffer = access.buffer;
    out.type = access.type;
    out.loops = access.loops;
    size_t level = loops_.size();
    while (out.stride == 0 && level-- > 0) out.stride = stride_of(access, level);
    out.moved_within = out.stride == 0 ? 0 : level + 1;
    shape_.accesses.push_back(out);
  }
}

// Returns the distance in memory, in elements, of one step of the loop: the smallest among the
// tuples that use it, along the innermost dimension that moves; 0 if none does, 1 for scalars.
int64_t StoreCollector::stride_of(const Access& access, size_t loop) const {
  const BufferInfo& buffer = buffers_[access.buffer];
  if (buffer.shape.empty()) return 1;
  const uint64_t bit = uint64_t{1} << loop;
  if ((access.loops & bit) == 0) return 0;
  const auto smaller = [](int64_t a, int64_t b) { return a == 0 || (b != 0 && b < a) ? b : a; };
  const auto moves = [&](IndexId index) { return (indices_[index].loops & bit) != 0; };
  const auto stride = [&](IndexId index, size_t d) {
    const Form& form = indices_[index].form;
    return forms_.coefficient_guess(form, loop) * buffer.strides[d];
  };
  int64_t smallest = 0;
  for (size_t d = buffer.shape.size(); d-- > 0;) {
    const Dim& dim = dims_[access.first_dim + d];
    const std::span<const IndexId> all(dim_indices_.data() + dim.begin, dim.count);
    if (std::none_of(all.begin(), all.end(), moves)) continue;
    if (!std::all_of(all.begin(), all.end(), moves)) break;
    for (const IndexId index : all) smallest = smaller(smallest, stride(index, d));
    return smallest;
  }
  // The tuples of the access move with the loop in different dimensions.
  for (TupleId t = access.first_tuple; t.valid(); t = tuples_[t].next) {
    const IndexId* indices = tuple_indices_.data() + tuples_[t].first;
    size_t d = buffer.shape.size();
    while (d-- > 0 && !moves(indices[d])) {
    }
    if (d < buffer.shape.size()) smallest = smaller(smallest, stride(indices[d], d));
  }
  return smallest;
}

}  // namespace tensorsmith::feature

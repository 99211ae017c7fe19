#include "feature/store_collector.h"

#include <algorithm>

namespace tensorsmith::feature {

StoreCollector::StoreCollector(const PerStoreOptions& options) : options_(options), gpu_(options.gpu) {
  threads_.fill(1);
  loops_.reserve(32);
  touches_.reserve(32);
  rows_.reserve(8);
  buffers_.reserve(16);
  indices_.reserve(32);
  tuple_indices_.reserve(128);
  pending_.reserve(8);
}

void StoreCollector::clear(bool keep_leaves) {
  forms_.clear();
  num_buffers_ = num_touches_ = 0;
  rows_.clear();
  loops_.clear();
  free_touches_.clear();
  free_thread_touches_.clear();
  leaves_.clear();
  keeps_leaves_ = keep_leaves;
  tree_position_ = tree_nodes_ = 2;
  outer_product_ = 1;
  unroll_step_ = 0;
  vectorize_ = unroll_ = parallel_ = {};
  gpu_ = options_.gpu;
  threads_.fill(1);
}

StoredBufferId StoreCollector::find_buffer(const ir::BufferNode* node) const {
  for (size_t b = 0; b < num_buffers_; ++b) {
    const StoredBufferId id(b);
    if (buffers_[id].node == node) return id;
  }
  return {};
}

StoredBufferId StoreCollector::buffer(const ir::BufferNode* node, const std::vector<int64_t>& shape,
                                      const std::vector<int64_t>& strides) {
  if (const StoredBufferId known = find_buffer(node); known.valid()) return known;
  if (num_buffers_ == buffers_.size()) buffers_.emplace_back();
  const StoredBufferId id(num_buffers_++);
  BufferInfo& info = buffers_[id];
  info.row = {};
  info.leaf = {};
  info.node = node;
  info.element_bytes = ir::bytes_of(node->dtype);
  info.shape = shape;
  info.strides = strides;
  if (strides.empty()) {
    info.strides.assign(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 1;) info.strides[d - 1] = info.strides[d] * shape[d];
  }
  return id;
}

// --- loops

Form StoreCollector::enter_loop(ir::ForKind kind, ir::ThreadAxis thread, int64_t extent,
                                int64_t unroll_step) {
  TS_CHECK(loops_.size() < kMaxLoops, "more than 64 nested loops");
  Loop loop;
  loop.extent = extent;
  loop.is_thread = kind == ir::ForKind::kThread;
  loop.outer_product = outer_product_;
  loop.unroll_step = unroll_step_;
  switch (kind) {
    case ir::ForKind::kSerial:
      break;
    case ir::ForKind::kParallel:
      loop.annotation = &parallel_;
      break;
    case ir::ForKind::kVectorized:
      loop.annotation = &vectorize_;
      break;
    case ir::ForKind::kUnrolled:
      loop.annotation = &unroll_;
      break;
    case ir::ForKind::kThread:
      gpu_ = true;
      if (thread != ir::ThreadAxis::kNone) loop.thread = &threads_[static_cast<size_t>(thread) - 1];
      break;
  }
  const float length = extent;
  if (loop.annotation != nullptr) {
    loop.saved_annotation = *loop.annotation;
    AnnotationFeatures& a = *loop.annotation;
    a.product = (a.count > 0 ? a.product : 1) * length;
    a.count += 1;
    a.innermost = length;
  }
  if (loop.thread != nullptr) {
    loop.saved_thread = *loop.thread;
    *loop.thread = (thread == ir::ThreadAxis::kVirtual ? *loop.thread : 1) * length;
  }
  if (unroll_step != 0) unroll_step_ = unroll_step;
  outer_product_ *= length;
  ++tree_position_;
  ++tree_nodes_;
  loops_.push_back(loop);
  loops_.back().touches = take_touches(kind == ir::ForKind::kThread);
  return forms_.loop(loops_.size() - 1, extent);
}

// TVM stores what a loop's statements touch under the address of the loop's node. The nodes of
// loops bound to threads are temporary: the next one gets the address of the last one left, and
// with it what was touched there, even in another kernel. Models trained on TVM's numbers expect
// this; it only changes the reuse.
size_t StoreCollector::take_touches(bool thread) {
  auto& free = thread ? free_thread_touches_ : free_touches_;
  const bool fresh = free.empty();
  if (fresh && num_touches_ == touches_.size()) touches_.emplace_back();
  const size_t taken = fresh ? num_touches_++ : free.back();
  if (!fresh) free.pop_back();
  if (fresh || !thread) {
    touches_[taken].touches.clear();
    touches_[taken].bytes = touches_[taken].element_bytes = 0;
  }
  return taken;
}

void StoreCollector::leave_loop() {
  const Loop& loop = loops_.back();
  (loop.is_thread ? free_thread_touches_ : free_touches_).push_back(loop.touches);
  outer_product_ = loop.outer_product;
  unroll_step_ = loop.unroll_step;
  if (loop.annotation != nullptr) *loop.annotation = loop.saved_annotation;
  if (loop.thread != nullptr) *loop.thread = loop.saved_thread;
  loops_.pop_back();
  ++tree_position_;
}

StoreCollector::Row& StoreCollector::row_of(StoredBufferId buffer) {
  RowId& row = buffers_[buffer].row;
  if (!row.valid()) row = rows_.push_back({});
  return rows_[row];
}

void StoreCollector::allocation(StoredBufferId buffer, int64_t elements) {
  Row& row = row_of(buffer);
  const float count = elements;
  row.alloc_size = count * buffers_[buffer].element_bytes;
  row.alloc_product = count * outer_product_;
  row.alloc_outer = outer_product_;
  row.alloc_inner = outer_product_ > 0 ? row.outer_product / outer_product_ : 0;
}

// --- stores

void StoreCollector::begin_store(StoredBufferId buffer) {
  stored_buffer_ = buffer;
  pending_.clear();
  indices_.clear();
  tuples_.clear();
  tuple_indices_.clear();
  accesses_.clear();
}

void StoreCollector::keep_annotation(AnnotationFeatures& row, const AnnotationFeatures& current) {
  // The product is only set if there is a loop: TVM keeps the product of an init.
  const float product = current.count > 0 ? current.product : row.product;
  row = current;
  row.product = product;
}

void StoreCollector::end_store(const OpCounts& ops) {
  shape_.ops = ops;
  measure();
  finish_store();
}

void StoreCollector::repeat_store(const StoreShape& shape) {
  shape_ = shape;
  for (StoreShape::Access& access : shape_.accesses) access.buffer = find_buffer(access.node);
  stored_buffer_ = shape_.accesses.front().buffer;
  finish_store();
}

void StoreCollector::finish_store() {
  const OpCounts& ops = shape_.ops;
  Row& row = row_of(stored_buffer_);
  std::array<double, kOperationColumns.size()> executed{};
  for (size_t i = 0; i < ops.counts.size(); ++i) {
    executed[i] = double{outer_product_} * ops.counts[i];
    row.ops[i] += executed[i];
  }
  touch_regions();
  // An update overwrites its init. A store that runs less often than the one described so far does
  // not.
  const bool overwrites = !row.stored || outer_product_ >= row.outer_product;
  if (overwrites) describe(row);
  if (keeps_leaves_) {
    if (overwrites) buffers_[stored_buffer_].leaf = leaves_.next();
    Leaf& leaf = leaves_.emplace_back();
    leaf.buffer = stored_buffer_;
    leaf.position = tree_position_;
    if (overwrites) {
      leaf.row = row;
    } else {
      describe(leaf.row);
    }
    leaf.row.ops = executed;
  }
  tree_position_ += 2;
  ++tree_nodes_;
}

void StoreCollector::combined_across_threads(StoredBufferId buffer) {
  row_of(buffer).stored = true;
  if (keeps_leaves_) {
    buffers_[buffer].leaf = leaves_.next();
    Leaf& leaf = leaves_.emplace_back();
    leaf.buffer = buffer;
    leaf.position = tree_position_;
  }
  tree_position_ += 2;
  ++tree_nodes_;
}

// Sets everything except for the operations, which add up, and the allocation.
void StoreCollector::describe(Row& row) {
  row.stored = true;
  keep_annotation(row.vectorize, vectorize_);
  keep_annotation(row.unroll, unroll_);
  keep_annotation(row.parallel, parallel_);
  row.gpu = gpu_;
  row.threads = threads_;
  access_features(row);
  intensity_curve(row);
  row.outer_product = outer_product_;
  row.loop_count = loops_.size();
  row.unroll_step = unroll_step_;
}

// Adds the accesses of the current store to all loops around it, and fills ops_list_ and
// bytes_list_: operations and touched bytes of one execution of each loop, from the innermost loop
// outwards.
void StoreCollector::touch_regions() {
  ops_list_.clear();
  bytes_list_.clear();
  double total_ops = shape_.ops.float_ops();
  const int64_t* next = shape_.elements.data();
  for (size_t level = loops_.size(); level-- > 0;) {
    LoopTouches& loop = touches_[loops_[level].touches];
    float bytes = 0;
    for (const StoreShape::Access& access : shape_.accesses) {
      const int64_t elements = *next++;
      const float element_bytes = buffers_[access.buffer].element_bytes;
      Touch* touch = nullptr;
      for (Touch& t : loop.touches) {
        if (t.buffer == access.buffer) touch = &t;
      }
      if (touch == nullptr) {
        loop.touches.push_back({access.buffer, 0, elements, elements});
        touch = &loop.touches.back();
      }
      ++touch->accesses;
      touch->smallest = std::min(touch->smallest, elements);
      const float touched = elements * element_bytes;
      loop.bytes += touched;
      loop.element_bytes += element_bytes;
      bytes += touched;
    }
    total_ops *= loops_[level].extent;
    ops_list_.push_back(total_ops);
    bytes_list_.push_back(bytes);
  }
}

const StoreCollector::Touch& StoreCollector::touch_of(size_t level, StoredBufferId buffer) const {
  for (const Touch& touch : touches_[loops_[level].touches].touches) {
    if (touch.buffer == buffer) return touch;
  }
  throw_internal_error(__FILE__, __LINE__, "buffer of the current store not entered");
}

void StoreCollector::access_features(Row& row) {
  // Sorted in descending order of (lines, bytes). Equal accesses are in the order of TVM's hash
  // map, the last inserted first. Insertion sort keeps this order, and there are few accesses.
  features_.clear();
  for (size_t a = shape_.accesses.size(); a-- > 0;) {
    const AccessFeatures f = features_of(shape_.accesses[a]);
    auto at = features_.end();
    while (at != features_.begin() &&
           ((at - 1)->lines < f.lines || ((at - 1)->lines == f.lines && (at - 1)->bytes < f.bytes)))
      --at;
    features_.insert(at, f);
  }
  row.access_count = std::min(features_.size(), kRowBuffers);
  std::copy_n(features_.begin(), row.access_count, row.accesses.begin());
}

StoreCollector::AccessFeatures StoreCollector::features_of(const StoreShape::Access& access) const {
  const BufferInfo& buffer = buffers_[access.buffer];
  AccessFeatures out;
  out.type = access.type;
  out.bytes = outer_product_ * buffer.element_bytes;
  if (loops_.empty()) {
    out.unique_bytes = buffer.element_bytes;
    out.lines = out.unique_lines = 1;
    return out;
  }
  out.unique_bytes = touch_of(0, access.buffer).first * buffer.element_bytes;
  // Starts from the innermost loop that moves the access. Each loop inside it divides the lines by
  // the extent of the innermost loop of all (TVM takes that extent instead of the skipped loop's
  // own).
  float reduce_ratio = 1;
  for (size_t level = loops_.size(); level > access.moved_within; --level)
    reduce_ratio *= loops_.back().extent;
  const float line = options_.cacheline_bytes;
  out.lines = std::max(1.0F, outer_product_ / std::max(reduce_ratio, 1.0F) *
                                 std::min(1.0F, access.stride * buffer.element_bytes / line));
  out.stride = access.moved_within == loops_.size() ? access.stride : 0;
  // TVM compares the region of the written buffer with the shape of each buffer, although the
  // region of the buffer itself must be meant. Models trained on TVM's numbers expect this.
  float continuous = buffer.element_bytes;
  for (size_t d = std::min(shape_.written_region.size(), buffer.shape.size()); d-- > 0;) {
    if (shape_.written_region[d] != buffer.shape[d]) continue;
    continuous *= shape_.written_region[d];
    break;
  }
  out.unique_lines = std::max(1.0F, out.unique_bytes / std::min(continuous, line));
  reuse(access, out);
  return out;
}

void StoreCollector::reuse(const StoreShape::Access& access, AccessFeatures& out) const {
  float iterations = 1, bytes = -1;
  for (size_t level = loops_.size(); level-- > 0;) {
    const float extent = loops_[level].extent;
    if ((access.loops >> level & 1) == 0) {
      out.reuse = ReuseType::kLoopMultipleRead;
      out.reuse_iterations = iterations;
      out.reuse_bytes = bytes < 0 ? touches_[loops_[level].touches].element_bytes : bytes;
      out.reuse_count = extent;
      return;
    }
    iterations *= extent;
    bytes = touches_[loops_[level].touches].bytes;
    const Touch& touch = touch_of(level, access.buffer);
    if (touch.accesses > 1) {
      out.reuse = ReuseType::kSerialMultipleReadWrite;
      out.reuse_iterations = extent > 0 ? touch.smallest / extent : 0;
      out.reuse_bytes = extent > 0 ? bytes / extent : 0;
      out.reuse_count = touch.accesses - 1;
      return;
    }
  }
}

// Computes the operations per byte at 10 evenly spaced points of the cumulative operations,
// interpolated between loops.
void StoreCollector::intensity_curve(Row& row) const {
  row.curve.fill(0);
  if (ops_list_.empty() || !(ops_list_.back() > 0)) return;
  size_t at = 0;
  for (size_t i = 0; i < kCurvePoints; ++i) {
    const float ops = ops_list_.back() * (i + 1) / kCurvePoints;
    while (at + 1 < ops_list_.size() && ops_list_[at] < ops - 1e-4F) ++at;
    const float here = intensity(at);
    if (at == 0) {
      row.curve[i] = here;
      continue;
    }
    const float base = intensity(at - 1);
    const float step = ops_list_[at] - ops_list_[at - 1];
    row.curve[i] = step > 0 ? base + (here - base) / step * (ops - ops_list_[at - 1]) : here;
  }
}

}  // namespace tensorsmith::feature

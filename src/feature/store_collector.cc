#include "feature/store_collector.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

namespace tensorsmith::feature {

namespace {

constexpr size_t kRowBuffers = 5;
constexpr size_t kCurvePoints = 10;
// The eighth position of the one-hot; TVM v0.16 gives no other to annotated loops, as the roles of the
// iterators are lost in a lowered program.
constexpr int kPositionNone = 0, kPositionMixed = 7;

float slog(float x) {
  if (x == 0) return 0;
  return x < 0 ? -std::log2(1 - x) : std::log2(x + 1);
}

float* one_hot(int value, int size, float* out) {
  for (int i = 0; i < size; ++i) *out++ = i == value ? 1.0F : 0.0F;
  return out;
}

}  // namespace

StoreCollector::StoreCollector(const PerStoreOptions& options) : options_(options), gpu_(options.gpu) {
  loops_.reserve(32);
  touches_.reserve(32);
  rows_.reserve(8);
  buffers_.reserve(16);
  indices_.reserve(32);
  pending_.reserve(8);
}

int StoreCollector::find_buffer(const ir::BufferNode* node) const {
  for (size_t b = 0; b < buffers_.size(); ++b) {
    if (buffers_[b].node == node) return static_cast<int>(b);
  }
  return -1;
}

int StoreCollector::buffer(const ir::BufferNode* node, const std::vector<int64_t>& shape,
                           const std::vector<int64_t>& strides) {
  if (const int known = find_buffer(node); known >= 0) return known;
  BufferInfo info;
  info.node = node;
  info.element_bytes = static_cast<float>(ir::bytes_of(node->dtype));
  info.shape = shape;
  info.strides = strides;
  if (strides.empty()) {
    info.strides.assign(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 1;) info.strides[d - 1] = info.strides[d] * shape[d];
  }
  buffers_.push_back(std::move(info));
  return static_cast<int>(buffers_.size()) - 1;
}

// --- loops
// --------------------------------------------------------------------------------------------------

Form StoreCollector::enter_loop(ir::ForKind kind, ir::ThreadAxis thread, int64_t extent,
                                int64_t unroll_step) {
  TS_CHECK(loops_.size() < static_cast<size_t>(kMaxLoops), "more than 64 nested loops");
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
  const auto length = static_cast<float>(extent);
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
  return forms_.loop(static_cast<int>(loops_.size()) - 1, extent);
}

// TVM keeps what a loop's statements touch by the address of its node. Loops bound to threads are temporary
// nodes: the next one gets the address of the last one left, and with it what was touched there, be it in
// another kernel. Models trained on TVM's numbers expect it so; it changes reuse only.
size_t StoreCollector::take_touches(bool thread) {
  auto& free = thread ? free_thread_touches_ : free_touches_;
  if (free.empty()) {
    touches_.emplace_back();
    return touches_.size() - 1;
  }
  const size_t taken = free.back();
  free.pop_back();
  if (!thread) {
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

StoreCollector::Row& StoreCollector::row_of(int buffer) {
  int& row = buffers_[static_cast<size_t>(buffer)].row;
  if (row < 0) {
    row = static_cast<int>(rows_.size());
    rows_.emplace_back();
  }
  return rows_[static_cast<size_t>(row)];
}

void StoreCollector::allocation(int buffer, int64_t elements) {
  Row& row = row_of(buffer);
  const auto count = static_cast<float>(elements);
  row.alloc_size = count * buffers_[static_cast<size_t>(buffer)].element_bytes;
  row.alloc_product = count * outer_product_;
  row.alloc_outer = outer_product_;
  row.alloc_inner = outer_product_ > 0 ? row.outer_product / outer_product_ : 0;
}

// --- stores
// -------------------------------------------------------------------------------------------------

void StoreCollector::begin_store(int buffer) {
  stored_buffer_ = buffer;
  pending_.clear();
  indices_.clear();
  tuples_.clear();
  accesses_.clear();
}

void StoreCollector::add_access(int buffer, bool write) {
  Access* access = nullptr;
  for (Access& a : accesses_) {
    if (a.buffer == buffer) access = &a;
  }
  // A store that also reads its buffer is an update, of the same element.
  if (access != nullptr && access->type != AccessType::kRead) {
    access->type = AccessType::kReadWrite;
    pending_.clear();
    return;
  }
  const auto tuple = static_cast<int>(tuples_.size());
  tuples_.push_back({indices_.size(), -1});
  if (access == nullptr) {
    accesses_.push_back({buffer, write ? AccessType::kWrite : AccessType::kRead, tuple, tuple, 0, 1});
    access = &accesses_.back();
  } else {
    tuples_[static_cast<size_t>(access->last_tuple)].next = tuple;
    access->last_tuple = tuple;
  }
  for (const Form& form : pending_) {
    Index index;
    index.form = form;
    // While no loop runs.
    index.range = {form.constant, form.constant};
    for (const FormArena::Term& t : forms_.terms(form)) {
      const FormArena::Atom& atom = forms_.atom(t);
      index.loops |= atom.loops;
      index.simple = index.simple && atom.kind == FormArena::Kind::kLoop;
    }
    if (!index.simple) index.range = forms_.range_from(form, kMaxLoops);
    access->loops |= index.loops;
    indices_.push_back(index);
  }
  pending_.clear();
}

void StoreCollector::keep_annotation(AnnotationFeatures& row, const AnnotationFeatures& current) {
  // The product is only set where there is a loop: TVM leaves that of an init standing.
  const float product = current.count > 0 ? current.product : row.product;
  row = current;
  row.product = product;
}

void StoreCollector::end_store(const OpCounts& ops) {
  Row& row = row_of(stored_buffer_);
  std::array<double, 16> executed{};
  for (size_t i = 0; i < ops.counts.size(); ++i) {
    executed[i] = static_cast<double>(outer_product_) * ops.counts[i];
    row.ops[i] += executed[i];
  }
  touch_regions(ops);
  // An update overwrites its init; what runs less often than what is there does not count.
  const bool overwrites = !row.stored || outer_product_ >= row.outer_product;
  if (overwrites) describe(row);
  if (keeps_leaves_) {
    if (overwrites) buffers_[static_cast<size_t>(stored_buffer_)].leaf = static_cast<int>(leaves_.size());
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

void StoreCollector::combined_across_threads(int buffer) {
  row_of(buffer).stored = true;
  if (keeps_leaves_) {
    buffers_[static_cast<size_t>(buffer)].leaf = static_cast<int>(leaves_.size());
    Leaf& leaf = leaves_.emplace_back();
    leaf.buffer = buffer;
    leaf.position = tree_position_;
  }
  tree_position_ += 2;
  ++tree_nodes_;
}

// Everything but the operations, which add up, and the allocation.
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
  row.loop_count = static_cast<float>(loops_.size());
  row.unroll_step = static_cast<float>(unroll_step_);
}

// Lets loop `level` run too (levels are entered from the innermost outwards).
void StoreCollector::enter_level(int level) {
  const uint64_t bit = uint64_t{1} << level;
  const int64_t last = loops_[static_cast<size_t>(level)].extent - 1;
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

// Elements of the box around all tuples of the access, while the loops entered so far run.
int64_t StoreCollector::box_of(const Access& access, std::vector<int64_t>* lengths) const {
  const BufferInfo& buffer = buffers_[static_cast<size_t>(access.buffer)];
  int64_t elements = 1;
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    ValueRange box = indices_[tuples_[static_cast<size_t>(access.first_tuple)].first + d].range;
    for (int t = tuples_[static_cast<size_t>(access.first_tuple)].next; t >= 0;
         t = tuples_[static_cast<size_t>(t)].next) {
      const ValueRange& other = indices_[tuples_[static_cast<size_t>(t)].first + d].range;
      box = {std::min(box.min, other.min), std::max(box.max, other.max)};
    }
    const bool known = box.min > -kUnknownBound && box.max < kUnknownBound;
    const int64_t length = known ? box.max - box.min + 1 : buffer.shape[d];
    if (__builtin_mul_overflow(elements, length, &elements)) elements = kUnknownBound;
    if (lengths != nullptr) lengths->push_back(length);
  }
  return std::max<int64_t>(elements, 0);
}

// Enters the accesses of the current store into all loops around it, and fills ops_list_ and bytes_list_:
// operations and touched bytes of one execution of each loop, from the innermost.
void StoreCollector::touch_regions(const OpCounts& ops) {
  ops_list_.clear();
  bytes_list_.clear();
  for (Access& access : accesses_) access.elements = box_of(access, nullptr);
  double total_ops = ops.float_ops();
  for (size_t level = loops_.size(); level-- > 0;) {
    enter_level(static_cast<int>(level));
    LoopTouches& loop = touches_[loops_[level].touches];
    float bytes = 0;
    for (Access& access : accesses_) {
      if ((access.loops >> level & 1) != 0) access.elements = box_of(access, nullptr);
      const int64_t elements = access.elements;
      const float element_bytes = buffers_[static_cast<size_t>(access.buffer)].element_bytes;
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
      const float touched = static_cast<float>(elements) * element_bytes;
      loop.bytes += touched;
      loop.element_bytes += element_bytes;
      bytes += touched;
    }
    total_ops *= static_cast<double>(loops_[level].extent);
    ops_list_.push_back(static_cast<float>(total_ops));
    bytes_list_.push_back(bytes);
  }
  written_region_.clear();
  box_of(accesses_[0], &written_region_);
}

const StoreCollector::Touch& StoreCollector::touch_of(size_t level, int buffer) const {
  for (const Touch& touch : touches_[loops_[level].touches].touches) {
    if (touch.buffer == buffer) return touch;
  }
  throw_internal_error(__FILE__, __LINE__, "buffer of the current store not entered");
}

void StoreCollector::access_features(Row& row) {
  // Sorted descending by (lines, bytes). Among equals the order is that of TVM's hash map: the last inserted
  // first. Insertion keeps the order of equals, and there are few.
  features_.clear();
  for (size_t a = accesses_.size(); a-- > 0;) {
    const AccessFeatures f = features_of(accesses_[a]);
    auto at = features_.end();
    while (at != features_.begin() &&
           ((at - 1)->lines < f.lines || ((at - 1)->lines == f.lines && (at - 1)->bytes < f.bytes)))
      --at;
    features_.insert(at, f);
  }
  row.access_count = std::min(features_.size(), kRowBuffers);
  std::copy_n(features_.begin(), row.access_count, row.accesses.begin());
}

StoreCollector::AccessFeatures StoreCollector::features_of(const Access& access) const {
  const BufferInfo& buffer = buffers_[static_cast<size_t>(access.buffer)];
  AccessFeatures out;
  out.type = access.type;
  out.bytes = outer_product_ * buffer.element_bytes;
  if (loops_.empty()) {
    out.unique_bytes = buffer.element_bytes;
    out.lines = out.unique_lines = 1;
    return out;
  }
  out.unique_bytes = static_cast<float>(touch_of(0, access.buffer).first) * buffer.element_bytes;
  // The innermost loop that moves the access; each loop inside of it divides the lines by the innermost
  // loop's extent (TVM takes that extent, not the skipped loop's own).
  int64_t stride = 0;
  float reduce_ratio = 1;
  size_t level = loops_.size();
  while (level-- > 0) {
    stride = stride_of(access, level);
    if (stride != 0) break;
    reduce_ratio *= static_cast<float>(loops_.back().extent);
  }
  const auto line = static_cast<float>(options_.cacheline_bytes);
  out.lines = std::max(1.0F, outer_product_ / std::max(reduce_ratio, 1.0F) *
                                 std::min(1.0F, static_cast<float>(stride) * buffer.element_bytes / line));
  out.stride = level + 1 == loops_.size() ? static_cast<float>(stride) : 0.0F;
  // TVM compares the region of the written buffer with the shape of each buffer, where that of the buffer
  // itself must be meant; models trained on TVM's numbers expect it so.
  float continuous = buffer.element_bytes;
  for (size_t d = std::min(written_region_.size(), buffer.shape.size()); d-- > 0;) {
    if (written_region_[d] != buffer.shape[d]) continue;
    continuous *= static_cast<float>(written_region_[d]);
    break;
  }
  out.unique_lines = std::max(1.0F, out.unique_bytes / std::min(continuous, line));
  reuse(access, out);
  return out;
}

// Memory distance, in elements, of one step of the loop: the smallest among the tuples that use it, by the
// innermost dimension that moves; 0 if none does. Scalars have 1.
int64_t StoreCollector::stride_of(const Access& access, size_t loop) const {
  const BufferInfo& buffer = buffers_[static_cast<size_t>(access.buffer)];
  if (buffer.shape.empty()) return 1;
  const uint64_t bit = uint64_t{1} << loop;
  if ((access.loops & bit) == 0) return 0;
  int64_t smallest = 0;
  for (int t = access.first_tuple; t >= 0; t = tuples_[static_cast<size_t>(t)].next) {
    for (size_t d = buffer.shape.size(); d-- > 0;) {
      const Index& index = indices_[tuples_[static_cast<size_t>(t)].first + d];
      if ((index.loops & bit) == 0) continue;
      const int64_t coefficient = forms_.coefficient_guess(index.form, static_cast<int>(loop));
      const int64_t stride = coefficient * buffer.strides[d];
      if (stride != 0 && (smallest == 0 || stride < smallest)) smallest = stride;
      break;
    }
  }
  return smallest;
}

void StoreCollector::reuse(const Access& access, AccessFeatures& out) const {
  float iterations = 1, bytes = -1;
  for (size_t level = loops_.size(); level-- > 0;) {
    const auto extent = static_cast<float>(loops_[level].extent);
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
      out.reuse_iterations = extent > 0 ? static_cast<float>(touch.smallest) / extent : 0;
      out.reuse_bytes = extent > 0 ? bytes / extent : 0;
      out.reuse_count = static_cast<float>(touch.accesses - 1);
      return;
    }
  }
}

// At 10 even points of the cumulative operations: operations per byte, interpolated between loops.
void StoreCollector::intensity_curve(Row& row) const {
  row.curve.fill(0);
  if (ops_list_.empty() || !(ops_list_.back() > 0)) return;
  size_t at = 0;
  for (size_t i = 0; i < kCurvePoints; ++i) {
    const float ops = ops_list_.back() * static_cast<float>(i + 1) / static_cast<float>(kCurvePoints);
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

// --- output
// -------------------------------------------------------------------------------------------------

FeatureMatrix StoreCollector::finish() const {
  FeatureMatrix matrix;
  for (const Row& row : rows_) matrix.rows += row.stored ? 1 : 0;
  matrix.values.resize(static_cast<size_t>(matrix.rows) * kPerStoreWidth);
  float* out = matrix.values.data();
  for (const Row& row : rows_) {
    if (row.stored) out = write_row(row, out);
  }
  return matrix;
}

LeafFeatures StoreCollector::finish_leaves() const {
  LeafFeatures out;
  out.tree_nodes = tree_nodes_;
  out.vectors.rows = static_cast<int>(leaves_.size());
  out.vectors.values.resize(leaves_.size() * kPerStoreWidth);
  // Rows are numbered as finish() orders them.
  std::vector<int> number(rows_.size(), 0);
  int count = 0;
  for (size_t r = 0; r < rows_.size(); ++r) number[r] = rows_[r].stored ? count++ : -1;
  float* values = out.vectors.values.data();
  for (size_t l = 0; l < leaves_.size(); ++l) {
    const BufferInfo& buffer = buffers_[static_cast<size_t>(leaves_[l].buffer)];
    const Row& whole = rows_[static_cast<size_t>(buffer.row)];
    const bool is_row = buffer.leaf == static_cast<int>(l);
    out.positions.push_back(leaves_[l].position);
    out.row_numbers.push_back(is_row ? number[static_cast<size_t>(buffer.row)] : -1);
    if (is_row) {
      values = write_row(whole, values);
      continue;
    }
    Row own = leaves_[l].row;
    own.alloc_size = whole.alloc_size;
    own.alloc_product = whole.alloc_product;
    own.alloc_outer = whole.alloc_outer;
    own.alloc_inner = whole.alloc_outer > 0 ? own.outer_product / whole.alloc_outer : 0;
    values = write_row(own, values);
  }
  return out;
}

float* StoreCollector::write_annotation(const AnnotationFeatures& annotation, float* out) {
  *out++ = slog(annotation.count);
  *out++ = slog(annotation.product);
  *out++ = slog(annotation.innermost);
  return one_hot(annotation.count > 0 ? kPositionMixed : kPositionNone, 8, out);
}

float* StoreCollector::write_access(const AccessFeatures& access, float* out) {
  out = one_hot(static_cast<int>(access.type), 3, out);
  *out++ = slog(access.bytes);
  *out++ = slog(access.unique_bytes);
  *out++ = slog(access.lines);
  *out++ = slog(access.unique_lines);
  out = one_hot(static_cast<int>(access.reuse), 3, out);
  *out++ = slog(access.reuse_iterations);
  *out++ = slog(access.reuse_bytes);
  *out++ = slog(access.reuse_count);
  const float divisor = access.reuse_count > 0.5F ? access.reuse_count : 0.5F;  // no reuse: doubled
  *out++ = slog(access.bytes / divisor);
  *out++ = slog(access.unique_bytes / divisor);
  *out++ = slog(access.lines / divisor);
  *out++ = slog(access.unique_lines / divisor);
  *out++ = slog(access.stride);
  return out;
}

float* StoreCollector::write_row(const Row& row, float* out) {
  const float* begin = out;
  for (double ops : row.ops) *out++ = slog(static_cast<float>(ops));
  out = write_annotation(row.vectorize, out);
  out = write_annotation(row.unroll, out);
  out = write_annotation(row.parallel, out);
  *out++ = row.gpu ? 1.0F : 0.0F;
  for (float length : row.threads) *out++ = slog(length);
  for (size_t i = 0; i < row.access_count; ++i) out = write_access(row.accesses[i], out);
  for (size_t i = row.access_count * 18; i < kRowBuffers * 18; ++i) *out++ = 0;
  for (float value : row.curve) *out++ = slog(value);
  for (float value : {row.alloc_size, row.alloc_product, row.alloc_outer, row.alloc_inner, row.outer_product,
                      row.loop_count, row.unroll_step})
    *out++ = slog(value);
  TS_CHECK(out - begin == kPerStoreWidth, "per-store row of another width than the schema");
  return out;
}

}  // namespace tensorsmith::feature

#include "feature/per_store.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "feature/access.h"
#include "feature/schedule_view.h"

namespace tensorsmith::feature {

namespace {

using ir::BinaryOp;

constexpr size_t kMaxLoops = 64;
constexpr size_t kMaxBuffers = 5;
constexpr size_t kCurvePoints = 10;
// The eighth position of the one-hot; TVM v0.16 gives no other to annotated loops, as the roles of the
// iterators are lost in a lowered program.
constexpr int kPositionNone = 0, kPositionMixed = 7;

enum class AccessType : uint8_t { kRead, kWrite, kReadWrite };
enum class ReuseType : uint8_t { kLoopMultipleRead, kSerialMultipleReadWrite, kNone };

struct OpCounts {
  // addsub, mul, divmod, cmp, mathfunc: columns 1-5 for floats and 8-12 for integers. mad (0, 7) and
  // otherfunc (6, 13) are always 0.
  std::array<int, 16> counts{};
  void add(int group, bool is_float) { ++counts[static_cast<size_t>(group + (is_float ? 0 : 7))]; }
  int float_ops() const { return counts[1] + counts[2] + counts[3] + counts[4] + counts[5]; }
};
constexpr int kAddSub = 1, kMul = 2, kDivMod = 3, kCompare = 4, kMathFunction = 5, kBoolOp = 14,
              kSelectOp = 15;

struct AccessFeatures {
  AccessType type = AccessType::kRead;
  float bytes = 0, unique_bytes = 0, lines = 0, unique_lines = 0;
  ReuseType reuse = ReuseType::kNone;
  float reuse_iterations = 0, reuse_bytes = 0, reuse_count = 0;
  float stride = 0;
};

struct AnnotationFeatures {
  float count = 0, product = 0, innermost = 0;
  int position = kPositionNone;
};

// One row before scaling.
struct StoreFeatures {
  const ir::BufferNode* buffer = nullptr;
  bool stored = false;
  std::array<double, 16> ops{};
  AnnotationFeatures vectorize, unroll, parallel;
  bool gpu = false;
  std::array<float, 7> threads{};
  std::array<AccessFeatures, kMaxBuffers> accesses;
  size_t access_count = 0;
  std::array<float, kCurvePoints> curve{};
  float alloc_size = 0, alloc_product = 0, alloc_outer = 0, alloc_inner = 0;
  float outer_product = 0, loop_count = 0, unroll_step = 0;
};

// What the statements seen so far in the body of a loop touch of one buffer in one execution of the loop.
struct Touch {
  const ir::BufferNode* buffer = nullptr;
  int accesses = 0;
  int64_t first = 0, smallest = 0;  // elements
};
struct LoopTouches {
  std::vector<Touch> touches;
  float bytes = 0;          // sum over the accesses of elements * size
  float element_bytes = 0;  // sum over the accesses of the size of one element
};

class Extractor {
 public:
  using Allocated = std::vector<std::pair<ir::Buffer, int64_t>>;

  // allocated: elements of buffers whose shape is not what is allocated for them; may be null.
  Extractor(const PerStoreOptions& options, const Allocated* allocated)
      : options_(options), allocated_(allocated), gpu_(options.gpu) {
    loops_.reserve(16);
    rows_.reserve(8);
  }

  FeatureMatrix run(const ir::Program& program) {
    visit(*program.body);
    // Outputs are allocated outside of all loops.
    for (const ir::Buffer& output : program.outputs) allocation(*output);
    FeatureMatrix matrix;
    for (const StoreFeatures& row : rows_) matrix.rows += row.stored ? 1 : 0;
    matrix.values.resize(static_cast<size_t>(matrix.rows) * kPerStoreWidth);
    float* out = matrix.values.data();
    for (const StoreFeatures& row : rows_) {
      if (row.stored) out = write_row(row, out);
    }
    return matrix;
  }

 private:
  // --- walk over statements
  // ---------------------------------------------------------------------------------

  void visit(const ir::StmtNode& stmt) {
    std::visit(ir::overloaded{
                   [&](const ir::For& loop) { visit_for(loop); },
                   [&](const ir::Store& store) { visit_store(store); },
                   [&](const ir::IfThenElse& branch) {
                     visit(*branch.then_body);
                     if (branch.else_body) visit(*branch.else_body);
                   },
                   [&](const ir::Seq& seq) {
                     for (const ir::Stmt& s : seq.stmts) visit(*s);
                   },
                   [&](const ir::Allocate& allocate) {
                     visit(*allocate.body);
                     allocation(*allocate.buffer);
                   },
               },
               stmt.kind);
  }

  void visit_for(const ir::For& loop) {
    TS_CHECK(loops_.size() < kMaxLoops, "more than 64 nested loops");
    const int64_t extent = std::max<int64_t>(range_of(loop.extent, loops_, 0).max, 0);
    const float outer = outer_product_;
    const int64_t unroll_step = unroll_step_;
    AnnotationFeatures* annotation = nullptr;
    float* thread = nullptr;
    switch (loop.kind) {
      case ir::ForKind::kSerial:
        break;
      case ir::ForKind::kParallel:
        annotation = &parallel_;
        break;
      case ir::ForKind::kVectorized:
        annotation = &vectorize_;
        break;
      case ir::ForKind::kUnrolled:
        annotation = &unroll_;
        break;
      case ir::ForKind::kThread:
        gpu_ = true;
        if (loop.thread != ir::ThreadAxis::kNone) thread = &threads_[static_cast<size_t>(loop.thread) - 1];
        break;
    }
    const AnnotationFeatures saved_annotation = annotation != nullptr ? *annotation : AnnotationFeatures();
    if (annotation != nullptr) {
      annotation->count += 1;
      annotation->product = (annotation->count > 1 ? annotation->product : 1) * static_cast<float>(extent);
      annotation->innermost = static_cast<float>(extent);
      annotation->position = kPositionMixed;
    }
    const float saved_thread = thread != nullptr ? *thread : 0;
    if (thread != nullptr) {
      const bool multiplies = loop.thread == ir::ThreadAxis::kVirtual;
      *thread = (multiplies ? *thread : 1) * static_cast<float>(extent);
    }
    if (loop.auto_unroll_max_step != 0) unroll_step_ = loop.auto_unroll_max_step;
    outer_product_ *= static_cast<float>(extent);
    loops_.push_back({loop.var.get(), extent});
    if (touches_.size() < loops_.size()) touches_.resize(loops_.size());
    LoopTouches& touches = touches_[loops_.size() - 1];
    touches.touches.clear();
    touches.bytes = touches.element_bytes = 0;

    visit(*loop.body);

    loops_.pop_back();
    outer_product_ = outer;
    unroll_step_ = unroll_step;
    if (annotation != nullptr) *annotation = saved_annotation;
    if (thread != nullptr) *thread = saved_thread;
  }

  StoreFeatures& row_of(const ir::BufferNode& buffer) {
    for (StoreFeatures& row : rows_) {
      if (row.buffer == &buffer) return row;
    }
    rows_.emplace_back();
    rows_.back().buffer = &buffer;
    return rows_.back();
  }

  void allocation(const ir::BufferNode& buffer) {
    StoreFeatures& row = row_of(buffer);
    int64_t allocated = buffer.num_elements();
    if (allocated_ != nullptr) {
      for (const auto& [other, count] : *allocated_) {
        if (other.get() == &buffer) allocated = count;
      }
    }
    const auto elements = static_cast<float>(allocated);
    row.alloc_size = elements * static_cast<float>(ir::bytes_of(buffer.dtype));
    row.alloc_product = elements * outer_product_;
    row.alloc_outer = outer_product_;
    row.alloc_inner = outer_product_ > 0 ? row.outer_product / outer_product_ : 0;
  }

  void visit_store(const ir::Store& store) {
    index_.reset(loops_);
    accesses_.clear();
    accesses_.push_back({store.buffer.get(), AccessType::kWrite, {}});
    accesses_.back().tuples.push_back(index_.add(store.indices, store.buffer->shape));
    OpCounts ops;
    visit_value(store.value, ops);

    StoreFeatures& row = row_of(*store.buffer);
    for (size_t i = 0; i < ops.counts.size(); ++i)
      row.ops[i] += static_cast<double>(outer_product_) * ops.counts[i];
    touch_regions(ops);
    // An update overwrites its init; what runs less often than what is there does not count.
    if (row.stored && outer_product_ < row.outer_product) return;
    row.stored = true;
    annotate(row.vectorize, vectorize_);
    annotate(row.unroll, unroll_);
    annotate(row.parallel, parallel_);
    row.gpu = gpu_;
    row.threads = threads_;
    access_features(row);
    intensity_curve(row);
    row.outer_product = outer_product_;
    row.loop_count = static_cast<float>(loops_.size());
    row.unroll_step = static_cast<float>(unroll_step_);
  }

  // The product is only set where there is a loop: TVM leaves that of an init standing.
  static void annotate(AnnotationFeatures& row, const AnnotationFeatures& current) {
    const float product = current.count > 0 ? current.product : row.product;
    row = current;
    row.product = product;
  }

  // --- expressions: op counts and reads
  // ---------------------------------------------------------------------

  void visit_value(const ir::Expr& e, OpCounts& ops) {
    ir::visit(ir::overloaded{
                  [](const ir::IntImm&) {},
                  [](const ir::FloatImm&) {},
                  [](const ir::VarRef&) {},
                  [&](const ir::Unary& unary) {
                    switch (unary.op) {
                      case ir::UnaryOp::kNeg:  // TVM has 0 - x
                        ops.add(kAddSub, ir::is_float(e.dtype()));
                        break;
                      case ir::UnaryOp::kNot:
                        ++ops.counts[kBoolOp];
                        break;
                      case ir::UnaryOp::kBitNot:
                        ops.add(kMathFunction, false);
                        break;
                    }
                    visit_value(unary.a, ops);
                  },
                  [&](const ir::Binary& binary) {
                    count_binary(binary, ops);
                    visit_value(binary.a, ops);
                    visit_value(binary.b, ops);
                  },
                  [&](const ir::Select& select) {
                    if (is_guarded_read(select)) {
                      ops.add(kMathFunction, ir::is_float(e.dtype()));
                    } else {
                      ++ops.counts[kSelectOp];
                    }
                    visit_value(select.condition, ops);
                    visit_value(select.a, ops);
                    visit_value(select.b, ops);
                  },
                  [&](const ir::Cast& cast) { visit_value(cast.a, ops); },
                  [&](const ir::Call& call) {
                    ops.add(kMathFunction, ir::is_float(e.dtype()));
                    for (const ir::Expr& arg : call.args) visit_value(arg, ops);
                  },
                  [&](const ir::Load& load) {
                    add_read(load);
                    for (const ir::Expr& index : load.indices) visit_value(index, ops);
                  },
              },
              e);
  }

  static void count_binary(const ir::Binary& binary, OpCounts& ops) {
    const bool is_float = ir::is_float(binary.a.dtype());
    switch (binary.op) {
      case BinaryOp::kAdd:
      case BinaryOp::kSub:
        return ops.add(kAddSub, is_float);
      case BinaryOp::kMul:
        return ops.add(kMul, is_float);
      case BinaryOp::kDiv:
      case BinaryOp::kFloorDiv:
      case BinaryOp::kFloorMod:
        return ops.add(kDivMod, is_float);
      case BinaryOp::kMin:
      case BinaryOp::kMax:
      case BinaryOp::kEq:
      case BinaryOp::kNe:
      case BinaryOp::kLt:
      case BinaryOp::kLe:
      case BinaryOp::kGt:
      case BinaryOp::kGe:
        return ops.add(kCompare, is_float);
      case BinaryOp::kAnd:
      case BinaryOp::kOr:
        ++ops.counts[kBoolOp];
        return;
      case BinaryOp::kBitAnd:
      case BinaryOp::kBitOr:
      case BinaryOp::kBitXor:
      case BinaryOp::kShl:
      case BinaryOp::kShr:
        return ops.add(kMathFunction, false);  // calls in TVM
    }
  }

  // select(condition, A[i], 0): what padding makes; TVM writes it as a call of if_then_else.
  static bool is_guarded_read(const ir::Select& select) {
    const auto constant = [](const ir::Expr& e) {
      return ir::as<ir::IntImm>(e) != nullptr || ir::as<ir::FloatImm>(e) != nullptr;
    };
    return (ir::as<ir::Load>(select.a) != nullptr && constant(select.b)) ||
           (ir::as<ir::Load>(select.b) != nullptr && constant(select.a));
  }

  void add_read(const ir::Load& load) {
    for (Access& access : accesses_) {
      if (access.buffer != load.buffer.get()) continue;
      // A store that also reads its buffer is an update, of the same element.
      if (access.type != AccessType::kRead) {
        access.type = AccessType::kReadWrite;
      } else {
        access.tuples.push_back(index_.add(load.indices, load.buffer->shape));
      }
      return;
    }
    accesses_.push_back({load.buffer.get(), AccessType::kRead, {}});
    accesses_.back().tuples.push_back(index_.add(load.indices, load.buffer->shape));
  }

  // --- regions, reuse, cache lines
  // --------------------------------------------------------------------------

  struct Access {
    const ir::BufferNode* buffer;
    AccessType type;
    std::vector<size_t> tuples;
  };

  // Elements that the access touches while the loops entered so far run: the box around all its tuples.
  int64_t touched_elements(const Access& access, bool keep_region) {
    int64_t elements = 1;
    if (keep_region) written_region_.clear();
    const size_t dims = index_.ranges(access.tuples[0]).size();
    for (size_t d = 0; d < dims; ++d) {
      ValueRange box = index_.ranges(access.tuples[0])[d];
      for (size_t t = 1; t < access.tuples.size(); ++t) {
        const ValueRange& other = index_.ranges(access.tuples[t])[d];
        box = {std::min(box.min, other.min), std::max(box.max, other.max)};
      }
      const bool known = box.min > -kUnknownBound && box.max < kUnknownBound;
      const int64_t length = known ? box.max - box.min + 1 : access.buffer->shape[d];
      if (__builtin_mul_overflow(elements, length, &elements)) elements = kUnknownBound;
      if (keep_region) written_region_.push_back(length);
    }
    return std::max<int64_t>(elements, 0);
  }

  // Enters the accesses of the current store into all loops around it, and fills ops_list_ and bytes_list_:
  // operations and touched bytes of one execution of each loop, from the innermost.
  void touch_regions(const OpCounts& ops) {
    ops_list_.clear();
    bytes_list_.clear();
    double total_ops = ops.float_ops();
    for (size_t level = loops_.size(); level-- > 0;) {
      index_.enter_level(level);
      LoopTouches& loop = touches_[level];
      int64_t bytes = 0;
      for (size_t a = 0; a < accesses_.size(); ++a) {
        const Access& access = accesses_[a];
        const int64_t elements = touched_elements(access, level == 0 && a == 0);
        const int element_bytes = ir::bytes_of(access.buffer->dtype);
        auto touch = std::find_if(loop.touches.begin(), loop.touches.end(),
                                  [&](const Touch& t) { return t.buffer == access.buffer; });
        if (touch == loop.touches.end()) {
          loop.touches.push_back({access.buffer, 0, elements, elements});
          touch = loop.touches.end() - 1;
        }
        ++touch->accesses;
        touch->smallest = std::min(touch->smallest, elements);
        loop.bytes += static_cast<float>(elements) * static_cast<float>(element_bytes);
        loop.element_bytes += static_cast<float>(element_bytes);
        bytes += elements * element_bytes;
      }
      total_ops *= static_cast<double>(loops_[level].extent);
      ops_list_.push_back(static_cast<float>(total_ops));
      bytes_list_.push_back(static_cast<float>(bytes));
    }
  }

  const Touch& touch_of(size_t level, const ir::BufferNode* buffer) const {
    for (const Touch& touch : touches_[level].touches) {
      if (touch.buffer == buffer) return touch;
    }
    throw_internal_error(__FILE__, __LINE__, "buffer of the current store not entered");
  }

  void access_features(StoreFeatures& row) {
    features_.clear();
    for (const Access& access : accesses_) features_.push_back(features_of(access));
    // Sorted descending by (lines, bytes). Among equals the order is that of TVM's hash map: the last
    // inserted first.
    order_.clear();
    for (size_t i = features_.size(); i-- > 0;) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return features_[a].lines > features_[b].lines ||
             (features_[a].lines == features_[b].lines && features_[a].bytes > features_[b].bytes);
    });
    row.access_count = std::min(order_.size(), kMaxBuffers);
    for (size_t i = 0; i < row.access_count; ++i) row.accesses[i] = features_[order_[i]];
  }

  AccessFeatures features_of(const Access& access) {
    AccessFeatures out;
    out.type = access.type;
    const auto element_bytes = static_cast<float>(ir::bytes_of(access.buffer->dtype));
    out.bytes = outer_product_ * element_bytes;
    if (loops_.empty()) {
      out.unique_bytes = element_bytes;
      out.lines = out.unique_lines = 1;
      return out;
    }
    out.unique_bytes = static_cast<float>(touch_of(0, access.buffer).first) * element_bytes;
    // The innermost loop that moves the access; each loop inside of it divides the lines by the innermost
    // loop's extent (TVM takes that extent, not the skipped loop's own).
    compute_strides(*access.buffer);
    int64_t stride = 0;
    float reduce_ratio = 1;
    size_t level = loops_.size();
    while (level-- > 0) {
      stride = access_stride(access, level);
      if (stride != 0) break;
      reduce_ratio *= static_cast<float>(loops_.back().extent);
    }
    const auto line = static_cast<float>(options_.cacheline_bytes);
    out.lines = std::max(1.0F, outer_product_ / std::max(reduce_ratio, 1.0F) *
                                   std::min(1.0F, static_cast<float>(stride) * element_bytes / line));
    out.stride = level + 1 == loops_.size() ? static_cast<float>(stride) : 0.0F;
    // TVM compares the region of the written buffer with the shape of each buffer, where that of the buffer
    // itself must be meant; models trained on TVM's numbers expect it so.
    float continuous = element_bytes;
    for (size_t d = std::min(written_region_.size(), access.buffer->shape.size()); d-- > 0;) {
      if (written_region_[d] != access.buffer->shape[d]) continue;
      continuous *= static_cast<float>(written_region_[d]);
      break;
    }
    out.unique_lines = std::max(1.0F, out.unique_bytes / std::min(continuous, line));
    reuse(access, out);
    return out;
  }

  void compute_strides(const ir::BufferNode& buffer) {
    strides_ = buffer.strides;
    if (!strides_.empty()) return;
    strides_.assign(buffer.shape.size(), 1);
    for (size_t d = buffer.shape.size(); d-- > 1;) strides_[d - 1] = strides_[d] * buffer.shape[d];
  }

  // The smallest stride among the tuples that use the loop; 0 if none does.
  int64_t access_stride(const Access& access, size_t loop) const {
    if (access.buffer->shape.empty()) return 1;
    int64_t smallest = 0;
    for (size_t tuple : access.tuples) {
      const int64_t stride = index_.stride(tuple, loop, strides_);
      if (stride != 0 && (smallest == 0 || stride < smallest)) smallest = stride;
    }
    return smallest;
  }

  void reuse(const Access& access, AccessFeatures& out) const {
    uint64_t used = 0;
    for (size_t tuple : access.tuples) used |= index_.loops_used(tuple);
    float iterations = 1, bytes = -1;
    for (size_t level = loops_.size(); level-- > 0;) {
      const auto extent = static_cast<float>(loops_[level].extent);
      if ((used >> level & 1) == 0) {
        out.reuse = ReuseType::kLoopMultipleRead;
        out.reuse_iterations = iterations;
        out.reuse_bytes = bytes < 0 ? touches_[level].element_bytes : bytes;
        out.reuse_count = extent;
        return;
      }
      iterations *= extent;
      bytes = touches_[level].bytes;
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
  void intensity_curve(StoreFeatures& row) const {
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
  float intensity(size_t i) const { return bytes_list_[i] > 0 ? ops_list_[i] / bytes_list_[i] : 0; }

  // --- output
  // -----------------------------------------------------------------------------------------------

  static float slog(float x) {
    if (x == 0) return 0;
    return x < 0 ? -std::log2(1 - x) : std::log2(x + 1);
  }

  static float* one_hot(int value, int size, float* out) {
    for (int i = 0; i < size; ++i) *out++ = i == value ? 1.0F : 0.0F;
    return out;
  }

  static float* write_annotation(const AnnotationFeatures& annotation, float* out) {
    *out++ = slog(annotation.count);
    *out++ = slog(annotation.product);
    *out++ = slog(annotation.innermost);
    return one_hot(annotation.position, 8, out);
  }

  static float* write_access(const AccessFeatures& access, float* out) {
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

  static float* write_row(const StoreFeatures& row, float* out) {
    const float* begin = out;
    for (double ops : row.ops) *out++ = slog(static_cast<float>(ops));
    out = write_annotation(row.vectorize, out);
    out = write_annotation(row.unroll, out);
    out = write_annotation(row.parallel, out);
    *out++ = row.gpu ? 1.0F : 0.0F;
    for (float length : row.threads) *out++ = slog(length);
    for (size_t i = 0; i < row.access_count; ++i) out = write_access(row.accesses[i], out);
    for (size_t i = row.access_count * 18; i < kMaxBuffers * 18; ++i) *out++ = 0;
    for (float value : row.curve) *out++ = slog(value);
    for (float value : {row.alloc_size, row.alloc_product, row.alloc_outer, row.alloc_inner,
                        row.outer_product, row.loop_count, row.unroll_step})
      *out++ = slog(value);
    TS_CHECK(out - begin == kPerStoreWidth, "per-store row of another width than the schema");
    return out;
  }

  const PerStoreOptions options_;
  const Allocated* allocated_;
  std::vector<LoopRange> loops_;
  std::vector<LoopTouches> touches_;  // by loop depth; kept to reuse their memory
  float outer_product_ = 1;
  int64_t unroll_step_ = 0;
  AnnotationFeatures vectorize_, unroll_, parallel_;
  bool gpu_;
  std::array<float, 7> threads_ = {1, 1, 1, 1, 1, 1, 1};  // blockIdx, threadIdx x, y, z, vthread
  std::vector<StoreFeatures> rows_;

  // Of the current store.
  IndexTable index_;
  std::vector<Access> accesses_;  // the written buffer first
  std::vector<int64_t> written_region_, strides_;
  std::vector<float> ops_list_, bytes_list_;
  std::vector<AccessFeatures> features_;
  std::vector<size_t> order_;
};

}  // namespace

FeatureMatrix extract_per_store(const ir::Program& program, const PerStoreOptions& options) {
  return Extractor(options, nullptr).run(program);
}

Result<FeatureMatrix> extract_per_store(const sched::Schedule& schedule, const PerStoreOptions& options) {
  TS_ASSIGN_OR_RETURN(const ScheduleView view, view_schedule(schedule));
  return Extractor(options, &view.allocated).run(view.program);
}

}  // namespace tensorsmith::feature

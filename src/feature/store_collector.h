// Computes per-store rows while a caller walks a program, enters and leaves loops, and reports
// stores with the forms of their indices. One pass; memory is reused from store to store.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "feature/forms.h"
#include "feature/per_store.h"
#include "ir/stmt.h"

namespace tensorsmith::feature {

// Operations of one execution of a store's value.
struct OpCounts {
  std::array<int, kOperationColumns.size()> counts{};

  int& operator[](ColumnName<kOperationColumns> column) { return counts[column.place()]; }
  int operator[](ColumnName<kOperationColumns> column) const { return counts[column.place()]; }
  void add(ColumnName<kOperationFields> operation, bool is_float, int count = 1) {
    constexpr size_t kFloats = place_of_group(kOperationColumns, kFloatGroup);
    constexpr size_t kInts = place_of_group(kOperationColumns, kIntGroup);
    counts[operation.place() + (is_float ? kFloats : kInts)] += count;
  }
  void add(const OpCounts& other) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  }
  int float_ops() const {
    const OpCounts& ops = *this;
    return ops["float_addsub"] + ops["float_mul"] + ops["float_divmod"] + ops["float_cmp"] +
           ops["float_mathfunc"];
  }
};

using StoredBufferId = Id<struct StoredBuffer>;  // a buffer that the program stores to or reads
using IndexId = Id<struct AccessIndex>;          // an index of the current store

enum class AccessType : uint8_t { kRead, kWrite, kReadWrite };

// The behaviour of a store in the loops around it, independent of other statements. It is the same
// wherever these loops have the same extents and the indices are the same.
struct StoreShape {
  struct Access {
    const ir::BufferNode* node = nullptr;
    StoredBufferId buffer;
    AccessType type = AccessType::kRead;
    uint64_t loops = 0;  // bit d: the loop at depth d moves the access
    // Number of loops from the outermost one to the innermost one that moves the access in memory
    // (0: none), and the distance in elements by which the latter moves it.
    size_t moved_within = 0;
    int64_t stride = 0;
  };
  OpCounts ops;
  std::vector<Access> accesses;         // the written buffer first
  std::vector<int64_t> elements;        // touched per execution of each loop, innermost loop first, by access
  std::vector<int64_t> written_region;  // extents by dimension of the written buffer, with all loops running
};

class StoreCollector {
 public:
  static constexpr size_t kMaxLoops = 64;

  explicit StoreCollector(const PerStoreOptions& options);

  FormArena& forms() { return forms_; }

  // Returns the id of a buffer. The shape and strides (empty: compact) of the first call are kept.
  StoredBufferId buffer(const ir::BufferNode* node, const std::vector<int64_t>& shape,
                        const std::vector<int64_t>& strides);
  StoredBufferId find_buffer(const ir::BufferNode* node) const;  // none: not yet known

  // Begins another program. `keep_leaves`: also keeps each store's own row, for finish_leaves().
  void clear(bool keep_leaves);

  // Opens a node of the syntax tree that is neither a loop nor a store: an allocation around the
  // following nodes.
  void open_node() { ++tree_position_, ++tree_nodes_; }
  void close_node() { ++tree_position_; }

  // Returns the form of the loop's variable. `unroll_step`: 0 = that of the loops outside.
  Form enter_loop(ir::ForKind kind, ir::ThreadAxis thread, int64_t extent, int64_t unroll_step);
  void leave_loop();
  // Limit of automatic unrolling for the loops entered from now on.
  int64_t unroll_step() const { return unroll_step_; }
  void set_unroll_step(int64_t step) { unroll_step_ = step; }
  // Reports that the buffer is allocated inside the current loops; called after its stores.
  void allocation(StoredBufferId buffer, int64_t elements);

  // One store: begin, its write and its reads (index by index), end. The id of an index is valid
  // until the store ends, so an index that many reads share is added once and then referred to by
  // its id.
  void begin_store(StoredBufferId buffer);
  IndexId add_index(const Form& index);
  void add_known_index(IndexId index) { pending_.push_back(index); }
  // Adds an access with the indices since the last access. A read of the written buffer makes the
  // store an update. `count`: number of accesses to the buffer; their indices are concatenated.
  void add_access(StoredBufferId buffer, bool write, size_t count = 1);
  void end_store(const OpCounts& ops);
  // Returns the shape of the store that ended last.
  const StoreShape& shape() const { return shape_; }
  // Reports a whole store whose shape is already known. Its buffers must have ids.
  void repeat_store(const StoreShape& shape);
  // Appends the extents of the loops entered.
  void append_extents(std::vector<int64_t>& out) const {
    for (const Loop& loop : loops_) out.push_back(loop.extent);
  }

  // Reports that a reduction across threads writes the buffer. To TVM, this is a leaf but not a
  // store: the row only has the numbers of the allocation.
  void combined_across_threads(StoredBufferId buffer);

  FeatureMatrix finish() const;
  LeafFeatures finish_leaves() const;

 private:
  static constexpr size_t kCurvePoints = kCurveColumns.size();
  enum class ReuseType : uint8_t { kLoopMultipleRead, kSerialMultipleReadWrite, kNone };

  using RowId = Id<struct RowPlace>;
  using LeafId = Id<struct LeafPlace>;
  using TupleId = Id<struct TuplePlace>;

  struct BufferInfo {
    const ir::BufferNode* node = nullptr;
    float element_bytes = 4;
    std::vector<int64_t> shape, strides;
    RowId row;
    LeafId leaf;  // the leaf that the row describes
  };
  struct AccessFeatures {
    AccessType type = AccessType::kRead;
    float bytes = 0, unique_bytes = 0, lines = 0, unique_lines = 0;
    ReuseType reuse = ReuseType::kNone;
    float reuse_iterations = 0, reuse_bytes = 0, reuse_count = 0;
    float stride = 0;
  };
  struct AnnotationFeatures {
    float count = 0, product = 0, innermost = 0;
  };
  // One row before scaling.
  struct Row {
    bool stored = false;
    std::array<double, kOperationColumns.size()> ops{};
    AnnotationFeatures vectorize, unroll, parallel;
    bool gpu = false;
    std::array<float, kThreadColumns.size()> threads{};
    std::array<AccessFeatures, kRowBuffers> accesses;
    size_t access_count = 0;
    std::array<float, kCurvePoints> curve{};
    float alloc_size = 0, alloc_product = 0, alloc_outer = 0, alloc_inner = 0;
    float outer_product = 0, loop_count = 0, unroll_step = 0;
  };
  // The row of a single store, in program order.
  struct Leaf {
    StoredBufferId buffer;
    int position = 0;
    Row row;
  };
  // The elements of one buffer that the statements seen so far in a loop body touch in one
  // execution of the loop.
  struct Touch {
    StoredBufferId buffer;
    int accesses = 0;
    int64_t first = 0, smallest = 0;  // elements of the first and of the smallest access
  };
  struct Loop {
    int64_t extent = 1;
    size_t touches = 0;  // index into touches_
    bool is_thread = false;
    // Values to be restored on leaving.
    float outer_product = 1;
    int64_t unroll_step = 0;
    AnnotationFeatures* annotation = nullptr;
    AnnotationFeatures saved_annotation;
    float* thread = nullptr;
    float saved_thread = 0;
  };
  struct LoopTouches {
    std::vector<Touch> touches;
    float bytes = 0;          // sum over the accesses of touched elements * element size
    float element_bytes = 0;  // sum over the accesses of the element size
  };
  struct Index {
    Form form;
    uint64_t loops = 0;
    bool simple = true;  // a sum of loops only, without other atoms
    ValueRange range;    // of its values while the loops entered so far run
  };
  struct Tuple {
    size_t first = 0;  // index into tuple_indices_
    TupleId next;      // next tuple of the same access
  };
  // An access of the store that is being reported.
  struct Access {
    StoredBufferId buffer;
    AccessType type = AccessType::kRead;
    TupleId first_tuple, last_tuple;
    uint64_t loops = 0;
    int64_t elements = 0;  // touched while the loops entered so far run
    size_t first_dim = 0;  // index into dims_
  };
  // The distinct indices of an access in one dimension: dim_indices_[begin, begin + count).
  struct Dim {
    size_t begin = 0, count = 0;
  };

  Row& row_of(StoredBufferId buffer);
  void describe(Row& row);
  size_t take_touches(bool thread);
  void enter_level(size_t level);
  void collect_dims();
  int64_t box_of(const Access& access, std::vector<int64_t>* lengths) const;
  void measure();
  void finish_store();
  void touch_regions();
  const Touch& touch_of(size_t level, StoredBufferId buffer) const;
  void access_features(Row& row);
  AccessFeatures features_of(const StoreShape::Access& access) const;
  int64_t stride_of(const Access& access, size_t loop) const;
  void reuse(const StoreShape::Access& access, AccessFeatures& out) const;
  void intensity_curve(Row& row) const;
  float intensity(size_t i) const { return bytes_list_[i] > 0 ? ops_list_[i] / bytes_list_[i] : 0; }
  static void keep_annotation(AnnotationFeatures& row, const AnnotationFeatures& current);
  static void write_annotation(const AnnotationFeatures& annotation,
                               ColumnValues<kAnnotationFields, float> out);
  static void write_access(const AccessFeatures& access, ColumnValues<kBufferFields, float> out);
  static void write_row(const Row& row, std::span<float> out);

  const PerStoreOptions options_;
  FormArena forms_;
  IdVector<StoredBufferId, BufferInfo> buffers_;  // the first num_buffers_ are in use
  size_t num_buffers_ = 0;
  IdVector<RowId, Row> rows_;
  std::vector<Loop> loops_;
  std::vector<LoopTouches> touches_;  // the first num_touches_ are in use
  size_t num_touches_ = 0;
  // Unused indices of touches_, the one freed last at the end.
  std::vector<size_t> free_touches_, free_thread_touches_;
  IdVector<LeafId, Leaf> leaves_;
  bool keeps_leaves_ = false;
  int tree_position_ = 2, tree_nodes_ = 2;  // counted from after the root and its attributes
  float outer_product_ = 1;
  int64_t unroll_step_ = 0;
  AnnotationFeatures vectorize_, unroll_, parallel_;
  bool gpu_;
  std::array<float, kThreadColumns.size()> threads_;

  // State of the current store.
  StoredBufferId stored_buffer_;
  std::vector<IndexId> pending_;      // indices of the next access
  IdVector<IndexId, Index> indices_;  // distinct indices
  IdVector<TupleId, Tuple> tuples_;
  std::vector<IndexId> tuple_indices_;
  std::vector<Dim> dims_;
  std::vector<IndexId> dim_indices_;
  std::vector<Access> accesses_;  // the written buffer first
  StoreShape shape_;
  std::vector<float> ops_list_, bytes_list_;
  std::vector<AccessFeatures> features_;
};

}  // namespace tensorsmith::feature

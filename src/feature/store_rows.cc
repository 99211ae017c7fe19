// Converts rows to the numbers of the schema.
#include <cmath>

#include "feature/store_collector.h"

namespace tensorsmith::feature {

namespace {

float slog(float x) {
  if (x == 0) return 0;
  return x < 0 ? -std::log2(1 - x) : std::log2(x + 1);
}

}  // namespace

FeatureMatrix StoreCollector::finish() const {
  FeatureMatrix matrix;
  for (const Row& row : rows_) matrix.rows += row.stored ? 1 : 0;
  matrix.values.resize(static_cast<size_t>(matrix.rows) * kPerStoreWidth);
  std::span<float> left(matrix.values);
  for (const Row& row : rows_) {
    if (!row.stored) continue;
    write_row(row, left);
    left = left.subspan(kPerStoreColumns.size());
  }
  return matrix;
}

LeafFeatures StoreCollector::finish_leaves() const {
  LeafFeatures out;
  out.tree_nodes = tree_nodes_;
  out.vectors.rows = leaves_.size();
  out.vectors.values.resize(leaves_.size() * kPerStoreWidth);
  // Rows are numbered as finish() orders them.
  IdVector<RowId, int> number;
  int count = 0;
  for (const Row& row : rows_) number.push_back(row.stored ? count++ : -1);
  for (size_t l = 0; l < leaves_.size(); ++l) {
    const std::span<float> values = std::span(out.vectors.values).subspan(l * kPerStoreColumns.size());
    const Leaf& leaf = leaves_[LeafId(l)];
    const BufferInfo& buffer = buffers_[leaf.buffer];
    const Row& whole = rows_[buffer.row];
    const bool is_row = buffer.leaf == LeafId(l);
    out.positions.push_back(leaf.position);
    out.row_numbers.push_back(is_row ? number[buffer.row] : -1);
    if (is_row) {
      write_row(whole, values);
      continue;
    }
    Row own = leaf.row;
    own.alloc_size = whole.alloc_size;
    own.alloc_product = whole.alloc_product;
    own.alloc_outer = whole.alloc_outer;
    own.alloc_inner = whole.alloc_outer > 0 ? own.outer_product / whole.alloc_outer : 0;
    write_row(own, values);
  }
  return out;
}

void StoreCollector::write_annotation(const AnnotationFeatures& annotation,
                                      ColumnValues<kAnnotationFields, float> out) {
  out["num"] = slog(annotation.count);
  out["prod"] = slog(annotation.product);
  out["len"] = slog(annotation.innermost);
  // TVM v0.16 gives no other type to annotated loops: the roles of iterators are lost in a lowered program.
  (annotation.count > 0 ? out["type.Mixed"] : out["type.None"]) = 1;
}

void StoreCollector::write_access(const AccessFeatures& access, ColumnValues<kBufferFields, float> out) {
  using Field = ColumnName<kBufferFields>;
  static constexpr Field kTypes[] = {"acc_type.Read", "acc_type.Write", "acc_type.ReadWrite"};
  static constexpr Field kReuse[] = {"reuse_type.LoopMultipleRead", "reuse_type.SerialMultipleReadWrite",
                                     "reuse_type.None"};
  out[kTypes[static_cast<size_t>(access.type)]] = 1;
  out["bytes"] = slog(access.bytes);
  out["unique_bytes"] = slog(access.unique_bytes);
  out["lines"] = slog(access.lines);
  out["unique_lines"] = slog(access.unique_lines);
  out[kReuse[static_cast<size_t>(access.reuse)]] = 1;
  out["reuse_dis_iter"] = slog(access.reuse_iterations);
  out["reuse_dis_bytes"] = slog(access.reuse_bytes);
  out["reuse_ct"] = slog(access.reuse_count);
  const float divisor = access.reuse_count > 0.5F ? access.reuse_count : 0.5F;  // no reuse: doubled
  out["bytes_d_reuse_ct"] = slog(access.bytes / divisor);
  out["unique_bytes_d_reuse_ct"] = slog(access.unique_bytes / divisor);
  out["lines_d_reuse_ct"] = slog(access.lines / divisor);
  out["unique_lines_d_reuse_ct"] = slog(access.unique_lines / divisor);
  out["stride"] = slog(access.stride);
}

// Values that are not written stay 0.
void StoreCollector::write_row(const Row& row, std::span<float> values) {
  const PerStoreValues<float> out(values);
  const auto write_all = [](const auto& quantities, std::span<float> columns) {
    for (size_t i = 0; i < quantities.size(); ++i) columns[i] = slog(quantities[i]);
  };
  write_all(row.ops, out.part<kOperationColumns>().values());
  write_annotation(row.vectorize, out.group<kAnnotationFields>(kVectorizedGroup));
  write_annotation(row.unroll, out.group<kAnnotationFields>(kUnrolledGroup));
  write_annotation(row.parallel, out.group<kAnnotationFields>(kParallelGroup));
  out["is_gpu"] = row.gpu ? 1.0F : 0.0F;
  write_all(row.threads, out.part<kThreadColumns>().values());
  for (size_t i = 0; i < row.access_count; ++i) write_access(row.accesses[i], out.buffer(i));
  write_all(row.curve, out.part<kCurveColumns>().values());
  out["alloc_size"] = slog(row.alloc_size);
  out["alloc_prod"] = slog(row.alloc_product);
  out["alloc_outer_prod"] = slog(row.alloc_outer);
  out["alloc_inner_prod"] = slog(row.alloc_inner);
  out["outer_prod"] = slog(row.outer_product);
  out["num_loops"] = slog(row.loop_count);
  out["auto_unroll_max_step"] = slog(row.unroll_step);
}

const Schema& per_store_schema() {
  static const Schema kSchema = {
      "per-store", "One row for each buffer that the program writes: the statement that writes it",
      kPerStoreColumns};
  return kSchema;
}

}  // namespace tensorsmith::feature

// Rows as the numbers of the schema.
#include <cmath>

#include "feature/store_collector.h"

namespace tensorsmith::feature {

namespace {

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

// Named access to a per-store row, with the logarithmic scale undone.
#pragma once

#include <cmath>
#include <span>

#include "feature/per_store.h"

namespace tensorsmith::learn {

class RowView {
 public:
  explicit RowView(std::span<const float> row) : row_(row) {}

  double float_addsub() const { return linear(1); }
  double float_mul() const { return linear(2); }
  double float_divmod() const { return linear(3); }
  double float_cmp() const { return linear(4); }
  double float_math() const { return linear(5) + linear(6); }
  double select_op() const { return linear(15); }
  bool vectorized() const { return plain(16) > 0; }
  double vector_length() const { return linear(18); }
  double unroll_product() const { return plain(27) > 0 ? linear(28) : 1; }
  bool parallel() const { return plain(38) > 0; }
  double parallel_product() const { return linear(39); }
  double alloc_bytes() const { return linear(157); }
  double outer_product() const { return linear(161); }
  double auto_unroll_max_step() const { return linear(163); }

  static constexpr int kBuffers = 5;
  // One of the five accessed buffers.
  class Buffer {
   public:
    Buffer(const RowView& row, int number) : row_(row), base_(57 + 18 * number) {}
    bool present() const { return row_.plain(base_) + row_.plain(base_ + 1) + row_.plain(base_ + 2) > 0; }
    bool writes() const { return row_.plain(base_) == 0; }
    bool reads_and_writes() const { return row_.plain(base_ + 2) > 0; }
    double bytes() const { return row_.linear(base_ + 3); }
    double unique_bytes() const { return row_.linear(base_ + 4); }
    double lines() const { return row_.linear(base_ + 5); }
    double unique_lines() const { return row_.linear(base_ + 6); }
    bool loop_reuse() const { return row_.plain(base_ + 7) > 0; }
    bool serial_reuse() const { return row_.plain(base_ + 8) > 0; }
    double reuse_iterations() const { return row_.linear(base_ + 10); }
    double reuse_bytes() const { return row_.linear(base_ + 11); }
    double reuse_count() const { return row_.linear(base_ + 12); }
    double stride() const { return row_.linear(base_ + 17); }

   private:
    const RowView& row_;
    int base_;
  };
  Buffer buffer(int number) const { return {*this, number}; }

 private:
  double plain(int column) const { return static_cast<double>(row_[static_cast<size_t>(column)]); }
  double linear(int column) const { return std::exp2(plain(column)) - 1; }
  std::span<const float> row_;
};

}  // namespace tensorsmith::learn

// CumSum and CumProd. Parameters: dtype, outer, length, inner (the tensor is outer x length x inner, scanned along
// the length), product (0 or 1), exclusive, reverse. Buffers: the tensor, the result. f16 and bf16 are accumulated in
// f32, and each element is rounded once.
#include <algorithm>

#include "runtime/routine.h"
#include "runtime/routines/support.h"

namespace tensorsmith::runtime {

namespace {

struct Scan {
  DType dtype = DType::kF32;
  int64_t outer = 0, length = 0, inner = 0;
  bool product = false, exclusive = false, reverse = false;
};

Result<Scan> read_scan(std::span<const int64_t> parameters) {
  ParameterReader reader(parameters);
  Scan scan;
  scan.dtype = reader.dtype();
  scan.outer = reader.extent();
  scan.length = reader.extent();
  scan.inner = reader.extent();
  scan.product = reader.flag();
  scan.exclusive = reader.flag();
  scan.reverse = reader.flag();
  reader.times(reader.times(scan.outer, scan.length), scan.inner);
  TS_RETURN_IF_ERROR(reader.finish());
  return scan;
}

Result<RoutineDemands> scan_demands(std::span<const int64_t> parameters) {
  TS_ASSIGN_OR_RETURN(const Scan scan, read_scan(parameters));
  const int64_t elements = scan.outer * scan.length * scan.inner;
  const int64_t bytes = bytes_of(scan.dtype, elements);
  return RoutineDemands{{bytes, bytes}, 1, 0, 0, static_cast<double>(elements)};
}

// Columns of a block, whose sums are kept in registers or L1.
constexpr int64_t kColumns = 64;

template <class T, bool Product>
void scan_block(const Scan& scan, const T* x, T* y, int64_t columns) {
  using E = Element<T>;
  using Computed = typename E::Computed;
  Computed total[kColumns];
  std::fill(total, total + columns, Computed(Product ? 1 : 0));
  for (int64_t step = 0; step < scan.length; ++step) {
    const int64_t row = (scan.reverse ? scan.length - 1 - step : step) * scan.inner;
    for (int64_t c = 0; c < columns; ++c) {
      const Computed value = E::load(x[row + c]);
      const Computed next = Product ? product_of(total[c], value) : static_cast<Computed>(total[c] + value);
      y[row + c] = E::store(scan.exclusive ? total[c] : next);
      total[c] = next;
    }
  }
}

template <class T>
void scan_all(const TensorsmithKernelContext& context, const Scan& scan, void* const* buffers) {
  const T* x = static_cast<const T*>(buffers[0]);
  T* y = static_cast<T*>(buffers[1]);
  const int64_t blocks = (scan.inner + kColumns - 1) / kColumns;
  const double elements = static_cast<double>(scan.outer) * scan.length * scan.inner;
  parallel(context, scan.outer * blocks, elements, [&](int64_t begin, int64_t end, int) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b % blocks * kColumns;
      const int64_t offset = b / blocks * scan.length * scan.inner + first;
      const int64_t columns = std::min(kColumns, scan.inner - first);
      if (scan.product)
        scan_block<T, true>(scan, x + offset, y + offset, columns);
      else
        scan_block<T, false>(scan, x + offset, y + offset, columns);
    }
  });
}

Status run_scan(const TensorsmithKernelContext& context, std::span<const int64_t> parameters,
                void* const* buffers) {
  TS_ASSIGN_OR_RETURN(const Scan scan, read_scan(parameters));
  with_type(scan.dtype, [&]<class T>(T) { scan_all<T>(context, scan, buffers); });
  return {};
}

}  // namespace

const Routine kPrefixScan = {"prefix_scan", scan_demands, run_scan};

}  // namespace tensorsmith::runtime

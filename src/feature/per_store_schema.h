// The columns of a per-store row: those of TVM v0.16 (src/auto_scheduler/feature.cc), in its order.
// Quantities are sums over all executions of the statement unless a sentence says otherwise.
#pragma once

#include "feature/schema.h"

namespace tensorsmith::feature {

constexpr Column thread_column(std::string_view name, std::string_view thread) {
  return Column::amount(name, "iterations",
                        "Extent of the loop around the statement that is bound to %; 1 if there is none.",
                        thread);
}
constexpr Column curve_column(std::string_view number, std::string_view share) {
  Column out = Column::amount(number, "operations/byte",
                              "Operations per byte at the loop depth where % of the operations are reached, "
                              "interpolated between loops.",
                              share);
  out.group = "arith_intensity_curve_";
  return out;
}

// Operations on one data type.
inline constexpr auto kOperationFields = std::to_array<Column>({
    Column::amount("mad", "operations",
                   "% multiply-adds: always 0, since products and sums are counted separately."),
    Column::amount("addsub", "operations", "% additions and subtractions."),
    Column::amount("mul", "operations", "% multiplications."),
    Column::amount("divmod", "operations", "% divisions and remainders."),
    Column::amount("cmp", "operations", "% comparisons, minima and maxima."),
    Column::amount("mathfunc", "operations",
                   "% function calls, bit operations, and reads guarded by a condition."),
    Column::amount("otherfunc", "operations", "% calls of anything but functions: always 0."),
});

inline constexpr std::string_view kFloatGroup = "float_", kIntGroup = "int_";
inline constexpr auto kOperationColumns = concatenated(
    grouped(kFloatGroup, "Floating-point", kOperationFields), grouped(kIntGroup, "Integer", kOperationFields),
    std::to_array<Column>({
        Column::amount("bool_op", "operations", "Logical operations: and, or, not."),
        Column::amount("select_op", "operations", "Selects."),
    }));

// The loops around the statement that have one annotation, e.g. vectorized.
inline constexpr auto kAnnotationFields = std::to_array<Column>({
    Column::amount("num", "loops", "Number of % loops around the statement."),
    Column::amount("prod", "iterations", "Product of the extents of the % loops around the statement."),
    Column::amount("len", "iterations", "Extent of the innermost % loop around the statement."),
    Column::flag("type.None", "1 if there is no % loop around the statement."),
    Column::flag("type.InnerSpatial", "Role of the % loops: always 0, because a program does not show it."),
    Column::flag("type.MiddleSpatial", "Role of the % loops: always 0, because a program does not show it."),
    Column::flag("type.OuterSpatial", "Role of the % loops: always 0, because a program does not show it."),
    Column::flag("type.InnerReduce", "Role of the % loops: always 0, because a program does not show it."),
    Column::flag("type.MiddleReduce", "Role of the % loops: always 0, because a program does not show it."),
    Column::flag("type.OuterReduce", "Role of the % loops: always 0, because a program does not show it."),
    Column::flag("type.Mixed", "1 if there are % loops around the statement, whatever their role."),
});

// The thread loops in the order of ir::ThreadAxis.
inline constexpr auto kThreadColumns = std::to_array<Column>({
    thread_column("blockIdx_x_len", "blockIdx.x"),
    thread_column("blockIdx_y_len", "blockIdx.y"),
    thread_column("blockIdx_z_len", "blockIdx.z"),
    thread_column("threadIdx_x_len", "threadIdx.x"),
    thread_column("threadIdx_y_len", "threadIdx.y"),
    thread_column("threadIdx_z_len", "threadIdx.z"),
    thread_column("vthread_len", "virtual threads"),
});

// One buffer that the statement accesses. Buffers are sorted by descending lines, then bytes.
inline constexpr auto kBufferFields = std::to_array<Column>({
    Column::flag("acc_type.Read", "1 if the statement only reads %."),
    Column::flag("acc_type.Write", "1 if the statement only writes %."),
    Column::flag("acc_type.ReadWrite", "1 if the statement reads and writes %."),
    Column::amount("bytes", "bytes", "Bytes accessed of %."),
    Column::amount("unique_bytes", "bytes", "Bytes accessed of %, each counted once."),
    Column::amount("lines", "cache lines", "Cache lines accessed of %."),
    Column::amount("unique_lines", "cache lines", "Cache lines accessed of %, each counted once."),
    Column::flag("reuse_type.LoopMultipleRead",
                 "1 if % is reused by iterations of a loop that does not change the accessed element."),
    Column::flag("reuse_type.SerialMultipleReadWrite",
                 "1 if % is reused by another access inside a loop around the statement."),
    Column::flag("reuse_type.None", "1 if nothing of % is reused."),
    Column::amount("reuse_dis_iter", "iterations", "Iterations until % is reused."),
    Column::amount("reuse_dis_bytes", "bytes", "Bytes accessed until % is reused."),
    Column::amount("reuse_ct", "uses", "Number of times that % is reused at that distance."),
    Column::amount("bytes_d_reuse_ct", "bytes",
                   "Bytes accessed of %, divided by the number of reuses; doubled if there are none."),
    Column::amount(
        "unique_bytes_d_reuse_ct", "bytes",
        "Different bytes accessed of %, divided by the number of reuses; doubled if there are none."),
    Column::amount("lines_d_reuse_ct", "cache lines",
                   "Cache lines accessed of %, divided by the number of reuses; doubled if there are none."),
    Column::amount(
        "unique_lines_d_reuse_ct", "cache lines",
        "Different cache lines accessed of %, divided by the number of reuses; doubled if there are none."),
    Column::amount("stride", "elements",
                   "Distance in % between the elements of neighbouring iterations of the innermost loop; 0 "
                   "if they are the same."),
});
inline constexpr std::array<std::string_view, 5> kBufferGroups = {"B0.", "B1.", "B2.", "B3.", "B4."};
inline constexpr size_t kRowBuffers = kBufferGroups.size();

inline constexpr auto kCurveColumns = std::to_array<Column>({
    curve_column("0", "1/10"),
    curve_column("1", "2/10"),
    curve_column("2", "3/10"),
    curve_column("3", "4/10"),
    curve_column("4", "5/10"),
    curve_column("5", "6/10"),
    curve_column("6", "7/10"),
    curve_column("7", "8/10"),
    curve_column("8", "9/10"),
    curve_column("9", "all"),
});

inline constexpr std::string_view kVectorizedGroup = "vec_", kUnrolledGroup = "unroll_",
                                  kParallelGroup = "parallel_";
inline constexpr auto kPerStoreColumns = concatenated(
    kOperationColumns, grouped(kVectorizedGroup, "vectorized", kAnnotationFields),
    grouped(kUnrolledGroup, "unrolled", kAnnotationFields),
    grouped(kParallelGroup, "parallel", kAnnotationFields),
    std::to_array<Column>({Column::flag("is_gpu", "1 for a GPU program.")}), kThreadColumns,
    grouped(kBufferGroups[0], "the buffer with the most lines", kBufferFields),
    grouped(kBufferGroups[1], "the buffer with the second most lines", kBufferFields),
    grouped(kBufferGroups[2], "the buffer with the third most lines", kBufferFields),
    grouped(kBufferGroups[3], "the buffer with the fourth most lines", kBufferFields),
    grouped(kBufferGroups[4], "the buffer with the fifth most lines", kBufferFields), kCurveColumns,
    std::to_array<Column>({
        Column::amount("alloc_size", "bytes", "Bytes of the written buffer's allocation."),
        Column::amount("alloc_prod", "elements",
                       "Elements of the allocation, times the iterations of the loops around it."),
        Column::amount("alloc_outer_prod", "iterations", "Iterations of the loops around the allocation."),
        Column::amount("alloc_inner_prod", "iterations",
                       "Executions of the statement per iteration of the loops around the allocation."),
        Column::amount("outer_prod", "runs", "Executions of the statement."),
        Column::amount("num_loops", "loops", "Number of loops around the statement."),
        Column::amount("auto_unroll_max_step", "copies",
                       "Most copies of the statement that automatic unrolling may make; 0 if it is off."),
    }));

// A row whose values are addressed by column names; T is float for writing.
template <class T>
class PerStoreValues : public ColumnValues<kPerStoreColumns, T> {
 public:
  using ColumnValues<kPerStoreColumns, T>::ColumnValues;

  // Requires number < kRowBuffers. All values are 0 if the statement accesses fewer buffers.
  ColumnValues<kBufferFields, T> buffer(size_t number) const {
    constexpr size_t kFirst = place_of_group(kPerStoreColumns, kBufferGroups[0]);
    return ColumnValues<kBufferFields, T>(
        this->values().subspan(kFirst + number * kBufferFields.size(), kBufferFields.size()));
  }
};
using PerStoreRow = PerStoreValues<const float>;

}  // namespace tensorsmith::feature

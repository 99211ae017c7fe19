// Workloads from the compute DAGs that TVM prints.
#pragma once

#include <string_view>
#include <vector>

#include "record/ansor/dag_syntax.h"

namespace tensorsmith::record {

// Extents of axes by operation and axis (spatial, then reduce), 0 where they are not known. Shorter vectors
// stand for zeros.
using DagExtents = std::vector<std::vector<int64_t>>;

// What a workload key ("[\"pool_layer\", \"max\", 128, ...]", "[\"md5\", [8, 16], ...]") tells about the
// extents that the text leaves open: the shape of the last operation, which stands last in a key of shapes,
// and the window of a pooling layer. Empty for keys it does not know; never an error.
DagExtents extents_of_key(const DagSyntax& dag, std::string_view workload_key);

// The extents of all axes. The text gives shapes of placeholders only; the others follow from the reads: an
// index runs over its dimension (valid convolution for sums of axes), a guarded read of padding is taken to
// pad as much behind as before. known wins over what the text suggests. Errors: kNotFound, the place is
// "line:column" of the operation, where an extent stays open; kMismatch where a read leaves its tensor.
Result<DagExtents> infer_extents(const DagSyntax& dag, const DagExtents& known);

// Tensors are f32 unless the text says otherwise (a cast as the outermost operation of a body), indices are
// kI64. Outputs are the tensors that no operation reads. extents must be complete. Errors: kCorrupt for text
// that mixes up numbers and conditions, with its place.
Result<ir::Workload> build_workload(const DagSyntax& dag, const DagExtents& extents);

// All of it. workload_key may be empty.
Result<ir::Workload> parse_dag(std::string_view text, std::string_view workload_key = {});

}  // namespace tensorsmith::record

// Converts the compute DAGs that TVM prints to workloads.
#pragma once

#include <string_view>
#include <vector>

#include "record/ansor/dag_syntax.h"

namespace tensorsmith::record {

// Extents of axes by operation and axis (spatial, then reduce), 0 if not known. Missing elements at
// the end count as 0.
using DagExtents = std::vector<std::vector<int64_t>>;

// Returns the extents, left open by the text, that a workload key ("[\"pool_layer\", \"max\", 128,
// ...]", "[\"md5\", [8, 16], ...]") determines: the shape of the last operation, which is last in a
// key of shapes, and the window of a pooling layer. Empty for unknown keys; never an error.
DagExtents extents_of_key(const DagSyntax& dag, std::string_view workload_key);

// Infers the extents of all axes. The text has only the shapes of placeholders; the others follow
// from the reads: an index covers its dimension (a valid convolution for sums of axes), and a
// guarded read of padding is assumed to pad equally on both sides. `known` takes precedence over
// the text. Errors: kNotFound with "line:column" of the operation if an extent stays unknown;
// kMismatch if a read is out of bounds of its tensor.
Result<DagExtents> infer_extents(const DagSyntax& dag, const DagExtents& known);

// Builds the workload. Tensors are f32 unless the text says otherwise (by a cast as the outermost
// operation of a body); indices are kI64. Outputs are the tensors that no operation reads.
// `extents` must be complete. kCorrupt with its place for text that confuses numbers with
// conditions.
Result<ir::Workload> build_workload(const DagSyntax& dag, const DagExtents& extents);

// Parses the text, infers the extents and builds the workload. workload_key may be empty.
Result<ir::Workload> parse_dag(std::string_view text, std::string_view workload_key = {});

}  // namespace tensorsmith::record

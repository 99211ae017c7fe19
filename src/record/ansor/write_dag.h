// Writes a workload as the compute DAG that TVM prints: the inverse of parse_dag().
#pragma once

#include <string>

#include "base/result.h"
#include "ir/workload.h"

namespace tensorsmith::record {

// kUnsupported with the operation if the text cannot express it: tensors that are not f32 (the text
// has no dtypes), infinities, reductions of two values, reduce axes whose first uses are in another
// order, some intrinsics.
Result<std::string> to_dag_text(const ir::Workload& workload);

}  // namespace tensorsmith::record

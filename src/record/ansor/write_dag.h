// A workload as the compute DAG that TVM prints: the inverse of parse_dag.
#pragma once

#include <string>

#include "base/result.h"
#include "ir/workload.h"

namespace tensorsmith::record {

// kUnsupported for what the text has no form for, with the operation: tensors that are not f32 (it names no dtypes),
// infinities, reductions of two values, reduce axes that are not first used in their order, some intrinsics.
Result<std::string> to_dag_text(const ir::Workload& workload);

}  // namespace tensorsmith::record

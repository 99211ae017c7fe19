// Determines which tasks can share schedules.
#pragma once

#include <cstdint>
#include <string>

#include "ir/workload.h"

namespace tensorsmith::search {

// Returns a hash that is equal for workloads with the same sequence of operators, whatever their
// shapes: the kernel classes of transfer-tuning (PACT 2022), determined by the computation and not
// by names.
uint64_t kernel_class(const ir::Workload& workload);
// Returns the hash as 16 hexadecimal digits, for messages and files.
std::string kernel_class_text(uint64_t kernel_class);

// Returns the distance between the shapes of two workloads of one class: the sum of |ln(extent /
// other extent)| over the axes of the operation with the most work. 0: that operation has equal
// shapes.
double shape_distance(const ir::Workload& a, const ir::Workload& b);

}  // namespace tensorsmith::search

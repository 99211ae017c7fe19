// Which tasks' schedules may suit one another.
#pragma once

#include <cstdint>
#include <string>

#include "ir/workload.h"

namespace tensorsmith::search {

// Equal for workloads with the same sequence of operators, whatever their shapes: the kernel classes of transfer-tuning
// (PACT 2022), told apart by what is computed and not by names.
uint64_t kernel_class(const ir::Workload& workload);
// As 16 hexadecimal digits, for people and files.
std::string kernel_class_text(uint64_t kernel_class);

// Of two workloads of one class, how far their shapes are apart: the sum of |ln(extent / other extent)| over the axes
// of the operation that does the most work. 0: the same shapes there.
double shape_distance(const ir::Workload& a, const ir::Workload& b);

}  // namespace tensorsmith::search

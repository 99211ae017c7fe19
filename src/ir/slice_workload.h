// Determines whether a workload computes independent slices of its outermost axis (images of a
// batch), and makes the workload for some of them.
#pragma once

#include <optional>
#include <vector>

#include "ir/workload.h"

namespace tensorsmith::ir {

struct WorkloadSlice {
  Workload workload;
  std::vector<bool>
      sliced;  // by workload.inputs(): read slice by slice; the others are constants that are read as a whole
};
// The outermost dimension of a tensor is its first one with more than one element. Slice s of
// `slices` is the s-th part of it, which is contiguous in memory, because tensors are row-major.
// Returns the workload for 1/parts of the slices (parts divides slices) if each slice of every
// output is the same function of the same slice of the inputs and of constants that are read as a
// whole; otherwise nothing. Inputs that are not constants are always sliced. A constant that is
// read slice by slice is sliced, too; the caller has to make sure that its slices are equal. The
// proof uses index expressions and is conservative: expressions that it does not understand are not
// sliced.
std::optional<WorkloadSlice> slice_workload(const Workload& workload, int64_t slices, int64_t parts);

}  // namespace tensorsmith::ir

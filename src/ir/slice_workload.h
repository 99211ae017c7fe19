// Whether a workload computes independent slices of its outermost axis, images of a batch, and the workload for a few of
// them.
#pragma once

#include <optional>
#include <vector>

#include "ir/workload.h"

namespace tensorsmith::ir {

struct WorkloadSlice {
  Workload workload;
  std::vector<bool>
      sliced;  // by workload.inputs(): read slice by slice; the others, all constants, are read whole
};
// The outermost dimension of a tensor is its first one of more than one element. Slice s of `slices` is the s-th part of
// it; the tensors being row-major, that is one piece of memory. Gives the workload for 1/parts of the slices (parts
// divides slices), if each slice of every output is the same function of the same slice of the inputs and of constants
// that are read whole; else nothing. An input that is no constant is always sliced. A constant that is read slice by slice is
// sliced too: it is up to the caller to see that its slices are equal. The proof is about index expressions and
// conservative: what is not understood is not sliced.
std::optional<WorkloadSlice> slice_workload(const Workload& workload, int64_t slices, int64_t parts);

}  // namespace tensorsmith::ir

// Storage of the tensors that a program allocates for its intermediate results, and the memory that they take
// together. Lowering and the objective of a search read it from here.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/regions.h"
#include "sched/schedule.h"
#include "sched/step.h"
#include "target/target.h"

namespace tensorsmith::sched {

// The part of a stage's bounds that its storage depends on; the same members of StageBounds and StageRegion.
struct StorageExtents {
  const IdVector<IteratorId, int64_t>& extents;
  const std::vector<int64_t>& root_extent;
  const std::vector<uint8_t>& root_may_leave;
};

struct Storage {
  std::vector<int64_t> shape;    // elements
  std::vector<int64_t> strides;  // elements; empty: row-major
};

// Returns the shape of a tensor in the layout.
std::vector<int64_t> layout_shape(const Layout& layout);

// Returns the storage of an output of a stage that is neither inlined nor a placeholder. An attached stage
// stores only the region that it computes at a time, with room for tails that run beyond it.
Storage storage_of(const Stage& stage, const ir::BufferNode& output, const StorageExtents& extents);

// Returns the bytes of memory that a program takes besides its inputs and outputs: all intermediate tensors,
// those inside a parallel loop once for each of the device's compute units, and on GPUs only those in the
// device's memory. Tensors that a backend keeps on the stack count, too. `regions`: of this schedule.
int64_t temporary_bytes(const Schedule& schedule, const RegionInference& regions,
                        const target::Device& device);
// The same for the program of a trace. Errors: those of replay() and of RegionInference::run().
Result<int64_t> temporary_bytes(const ir::Workload& workload, const Trace& trace,
                                const target::Device& device);

}  // namespace tensorsmith::sched

// Cutting a graph into tensor programs (tasks) and planning how they run.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "ir/workload.h"

namespace tensorsmith::graph {

struct Task {
  std::string key;                 // ir::structural_key(workload)
  std::string name;                // "conv2d_add_relu_1x64x56x56"
  std::vector<std::string> nodes;  // ONNX nodes of the first call, for reports
  ir::Workload workload;           // placeholders marked is_constant where a weight goes in
  double flops = 0;
  int calls = 0;  // how often the model runs it
};

// One kernel call.
struct Call {
  size_t task = 0;
  std::vector<ValueId> inputs;   // by workload.inputs()
  std::vector<ValueId> outputs;  // by workload.outputs
};

struct Partition {
  std::vector<Task> tasks;  // deduplicated by key, in order of first use
  std::vector<Call> calls;  // topological order
};

// Fuses elementwise prologues and epilogues into reductions, injective chains into one kernel; one task a
// group. Outputs that are constants, inputs or aliases become copies.
Result<Partition> partition(const Graph& graph);

// Arena offsets of every value that lives in memory during a run (not constants, inputs or outputs).
struct MemoryPlan {
  std::vector<int64_t> offset;  // by ValueId; -1 = not in the arena
  int64_t arena_bytes = 0;
};
MemoryPlan plan_memory(const Graph& graph, const Partition& partition);

}  // namespace tensorsmith::graph

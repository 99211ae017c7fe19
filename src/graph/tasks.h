// Cutting a graph into tensor programs (tasks) and planning how they run.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "ir/workload.h"
#include "runtime/model_format.h"

namespace tensorsmith::graph {

// "1x64x56x56", "scalar": as in names of tasks.
std::string shape_text(const std::vector<int64_t>& shape);

struct Task {
  std::string key;                 // ir::structural_key(workload)
  std::string name;                // "conv2d_add_relu_1x64x56x56"
  std::vector<std::string> nodes;  // ONNX nodes of the first call, for reports
  // Placeholders are marked is_constant where a weight goes in. Axes are collapsed (ir/collapse_axes.h):
  // shapes are those of the graph's values only in the number of elements.
  ir::Workload workload;
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
  // By ValueId: the value whose memory holds it, and the place of its first byte there, aligned.
  // Reshape and its like cost nothing: their output has the same storage as their input. The outputs of a
  // Split may lie in its input, the inputs of a Concat in its output (graph/views.h). Everything else is its
  // own storage.
  std::vector<ValueId> storage_of;
  std::vector<int64_t> storage_offset;
};

// Fuses elementwise epilogues and cheap prologues into reductions, injective chains into one kernel; one task
// a group. Graph outputs that would share storage with an input, a constant or another output get a copy
// kernel. Errors: an operator that cannot be expressed (the node in place).
// alignment: of the places of values inside others, bytes.
Result<Partition> partition(const Graph& graph, int64_t alignment = runtime::kBufferAlignment);

// In how many parts, one after the other, a batch runs with the fewest bytes between memory and a cache of so many
// bytes: the weights come once a part, and what a call reads and writes comes and goes where it does not fit.
int64_t parts_of_batch(const Graph& graph, const Partition& partition, int64_t cache_bytes);
// Makes a batch run in parts: calls are repeated for each of them, values of parts are appended to the graph's and lie in
// the arena or at their places in its inputs and outputs; its nodes stay as they are. Changes nothing and returns false
// unless all calls compute images independently of each other (ir/slice_workload.h) and a part of each input and
// output begins where kernels' buffers may.
bool split_batch(Graph& graph, Partition& partition, int64_t parts);

// Arena offsets of every value that lives in memory during a run.
struct MemoryPlan {
  // By ValueId: bytes from the arena's start, a multiple of the alignment; -1 = not in the arena (constants, graph
  // inputs, graph outputs, values inside a fused task).
  std::vector<int64_t> offset;
  int64_t arena_bytes = 0;
};
// Greedy by size over the live ranges of storages: each takes the lowest gap that is free during its life.
MemoryPlan plan_memory(const Graph& graph, const Partition& partition,
                       int64_t alignment = runtime::kBufferAlignment);

}  // namespace tensorsmith::graph

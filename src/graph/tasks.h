// Divides a graph into tensor programs (tasks) and plans their execution.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "ir/workload.h"
#include "runtime/model_format.h"

namespace tensorsmith::graph {

// Returns "1x64x56x56" or "scalar", as used in names of tasks.
std::string shape_text(const std::vector<int64_t>& shape);

struct Task {
  std::string key;                 // ir::structural_key(workload)
  std::string name;                // "conv2d_add_relu_1x64x56x56"
  std::vector<std::string> nodes;  // ONNX nodes of the first call, for reports
  // Placeholders that take a weight are marked is_constant. Axes are collapsed
  // (ir/collapse_axes.h), so shapes agree with those of the graph's values only in the number of
  // elements.
  ir::Workload workload;
  double flops = 0;
  int calls = 0;  // number of times that the model runs it
};

// One call of a kernel or of a routine.
struct Call {
  std::optional<size_t> task;    // nothing for a routine
  std::vector<ValueId> inputs;   // by workload.inputs(), or by the routine's buffers
  std::vector<ValueId> outputs;  // by workload.outputs, likewise
  runtime::RoutineCall routine = {};
  std::string name = {};  // of a routine's call, for reports: "topk_1x24000"
  int64_t turns = 1;      // number of times that it runs in a run of the model, as far as that is known
};

// Calls that run repeatedly, or only under a condition (runtime::RegionInfo).
struct PlacedRegion {
  size_t begin = 0, end = 0;  // calls
  int64_t turns = 1;
  ValueId count, condition;          // may be omitted
  bool until = false;                // there is no turn if the condition has this value
  std::map<ValueId, int64_t> moves;  // values whose place moves by this many bytes after each turn
};

struct Partition {
  std::vector<Task> tasks;            // deduplicated by key, in order of first use
  std::vector<Call> calls;            // topological order
  std::vector<PlacedRegion> regions;  // as in runtime::ModelDescription
  // The storage of a value is the value whose memory contains it; the offset is the aligned position of the
  // value's first byte there. Reshape and similar operators cost nothing: their output has the same storage
  // as their input. The outputs of a Split may be parts of its input, and the inputs of a Concat parts of its
  // output (graph/views.h). Every other value is its own storage.
  IdVector<ValueId, ValueId> storage_of;
  IdVector<ValueId, int64_t> storage_offset;
};

struct PartitionOptions {
  int64_t alignment = runtime::kBufferAlignment;  // of the positions of values inside others, in bytes
  // Nodes that have a routine become calls of it. Without routines they are kernels, which may take much
  // longer: for GPUs, and for source code that needs no library.
  bool routines = true;
};
// Appends the values of the bodies of loops and branches to the graph's; the graph's nodes do not change.
// Fuses elementwise epilogues and cheap prologues into reductions, and injective chains into one
// kernel; each group becomes one task. Graph outputs that would share storage with an input, a
// constant or another output get a copy kernel. Error: an operator that cannot be expressed (the
// node is the place).
Result<Partition> partition(Graph& graph, const PartitionOptions& options = {});

// Returns the number of sequential parts of a batch that minimizes the bytes transferred between
// memory and a cache of cache_bytes: the weights are loaded once per part, and a call's inputs and
// outputs are transferred if they do not fit.
int64_t parts_of_batch(const Graph& graph, const Partition& partition, int64_t cache_bytes);
// Makes a batch run in parts: calls are repeated for each part, and values of parts are appended to
// the graph's. They are in the arena or at their positions in the graph's inputs and outputs; the
// graph's nodes do not change. Changes nothing and returns false unless all calls compute images
// independently of each other (ir/slice_workload.h) and each part of an input or output begins
// where buffers of kernels may begin.
bool split_batch(Graph& graph, Partition& partition, int64_t parts);

// Arena offsets of all values that are in memory during a run.
struct MemoryPlan {
  // Bytes from the arena's start, a multiple of the alignment; -1 for values that are not in the arena
  // (constants, graph inputs, graph outputs, values inside a fused task).
  IdVector<ValueId, int64_t> offset;
  int64_t arena_bytes = 0;
};
// Greedy by size over the live ranges of storages: each takes the lowest gap that is free while it
// is live.
MemoryPlan plan_memory(const Graph& graph, const Partition& partition,
                       int64_t alignment = runtime::kBufferAlignment);

}  // namespace tensorsmith::graph

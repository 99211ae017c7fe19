// Turns a model into tasks, the front half that all model commands share. A model is an ONNX file
// or a network of the zoo, "zoo:resnet50:batch=4" (graph/zoo/zoo.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/tasks.h"
#include "target/target.h"

namespace tensorsmith::engine {

struct ModelSource {
  std::string path;
  graph::ImportOptions import = {};  // not used for networks of the zoo
  bool tf32 = false;                 // graph::OptimizeOptions
  bool routines = true;              // graph::PartitionOptions; GPUs have none
};

struct LoadedModel {
  graph::Graph graph;
  graph::Partition partition;
  graph::MemoryPlan memory;
  // By output of the imported graph (quantization_step.h); empty: no output is quantized.
  std::vector<double> quantization_steps;
};

Result<graph::Graph> import_model(const ModelSource& options);
// Optimizes and partitions the graph and plans the memory.
Result<LoadedModel> prepare_model(graph::Graph graph, const graph::PartitionOptions& parts = {},
                                  const graph::OptimizeOptions& options = {});
// Imports the model, then calls prepare_model().
Result<LoadedModel> load_model(const ModelSource& options);
// Loads the model as it runs on the device: on a CPU a large batch is split into parts that fit the
// caches; on a GPU values are placed where its kernels can access them. kInvalidArgument if TF32 is
// requested and the device does not support it.
Result<LoadedModel> load_model(const ModelSource& options, const target::Device& device);

// Shapes of the inputs of a task's first call, in the order of its workload's inputs. Unlike those of
// the workload, whose axes are collapsed, they are the shapes of the graph's values.
using InputShapes = std::vector<std::vector<int64_t>>;
// Returns the shapes by task of the partition.
std::vector<InputShapes> input_shapes(const LoadedModel& model);

// A task that several models may share.
struct SharedTask {
  graph::Task task;                                // as in the first model that has it
  std::vector<std::pair<std::string, int>> calls;  // models with the number of calls in one run
  InputShapes inputs;                              // in the first model that has it
};
// Returns the tasks of all models with unsplit batches, deduplicated by key, in order of first use.
// Only one model is in memory at a time.
Result<std::vector<SharedTask>> load_tasks(const std::vector<ModelSource>& models);

}  // namespace tensorsmith::engine

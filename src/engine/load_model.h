// From a model to tasks: the front half that all model commands share. A model is an ONNX file or a network
// of the zoo, "zoo:resnet50:batch=4" (graph/zoo/zoo.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/tasks.h"
#include "target/target.h"

namespace tensorsmith::engine {

struct ModelSource {
  std::string path;
  graph::ImportOptions import = {};  // networks of the zoo take none
  bool tf32 = false;                 // graph::OptimizeOptions
};

struct LoadedModel {
  graph::Graph graph;
  graph::Partition partition;
  graph::MemoryPlan memory;
  // By output, of the graph as it was imported (quantization_step.h); empty: no output is quantized.
  std::vector<double> quantization_steps;
};

Result<graph::Graph> import_model(const ModelSource& options);
// Optimizes, partitions, plans the memory. alignment: of values in it, bytes.
Result<LoadedModel> prepare_model(graph::Graph graph, int64_t alignment = runtime::kBufferAlignment,
                                  const graph::OptimizeOptions& options = {});
// Imports, then prepare_model().
Result<LoadedModel> load_model(const ModelSource& options);
// As it runs on the device: a large batch in parts that fit a CPU's caches; on a GPU values where its kernels can get them.
// kInvalidArgument: TF32 is asked for, which it does not multiply.
Result<LoadedModel> load_model(const ModelSource& options, const target::Device& device);

// A task that several models may have.
struct SharedTask {
  graph::Task task;                                // as in the first model that has it
  std::vector<std::pair<std::string, int>> calls;  // model and how often one run of it calls the task
};
// The tasks of all models, batches whole, deduplicated by key, in order of first use. One model is in memory at a time.
Result<std::vector<SharedTask>> load_tasks(const std::vector<ModelSource>& models);

}  // namespace tensorsmith::engine

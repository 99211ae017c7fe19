// From an ONNX file to tasks: the front half that all model commands share.
#pragma once

#include <string>

#include "graph/tasks.h"
#include "tools/options.h"

namespace tensorsmith::tools {

struct LoadedModel {
  graph::Graph graph;
  graph::Partition partition;
  graph::MemoryPlan memory;
};

// Imports, optimizes, partitions.
Result<LoadedModel> load_model(const ModelOptions& options);

}  // namespace tensorsmith::tools

#include "tools/model_pipeline.h"

namespace tensorsmith::tools {

Result<LoadedModel> load_model(const ModelOptions& options) {
  LoadedModel model;
  graph::ImportOptions import_options;
  TS_ASSIGN_OR_RETURN(import_options.shapes, options.parsed_shapes());
  TS_ASSIGN_OR_RETURN(model.graph, graph::import_onnx(options.path, import_options));
  TS_RETURN_IF_ERROR(graph::optimize(model.graph));
  TS_ASSIGN_OR_RETURN(model.partition, graph::partition(model.graph));
  model.memory = graph::plan_memory(model.graph, model.partition);
  return model;
}

}  // namespace tensorsmith::tools

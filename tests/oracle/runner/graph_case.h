// One model through import, passes, compilation and runtime, in several variants.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/compile_model.h"
#include "lower/interpreter.h"
#include "request.h"

namespace tensorsmith::oracle {

class GraphCase {
 public:
  // Imports, optimizes and partitions the model. After an error stage() says where it was.
  Status load(const std::string& path);

  const graph::Graph& graph() const { return model_.graph; }
  const graph::Partition& partition() const { return model_.partition; }

  // The outputs of one run. It goes the way of `tensorsmith compile` and the C interface: a compiled model is
  // written to the directory, loaded and run twice on buffers with fences, outputs filled with other bytes
  // before each run. Outputs that differ between the two (not written, or not deterministic) and changed
  // canaries are errors; writing to an input crashes. traces: of random schedules, printed; may be null.
  // After an error stage() says where it was.
  Result<std::vector<lower::Tensor>> run(const RunRequest& request, const std::vector<lower::Tensor>& inputs,
                                         const std::string& directory, std::vector<std::string>* traces);

  const std::string& stage() const { return stage_; }

 private:
  Result<std::vector<engine::TaskSchedule>> random_schedules(const target::Device& device, uint64_t seed);
  Result<std::vector<lower::Tensor>> execute(const std::vector<lower::Tensor>& inputs,
                                             const std::string& directory, int threads);

  engine::LoadedModel model_;
  std::string stage_;
  std::map<std::string, engine::BuildCache> caches_;  // by what machine code depends on
};

}  // namespace tensorsmith::oracle

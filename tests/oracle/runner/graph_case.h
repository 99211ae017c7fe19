// Takes one model through import, passes, compilation and runtime, in several variants.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/model/compile_model.h"
#include "lower/interpreter.h"
#include "request.h"

namespace tensorsmith::oracle {

class GraphCase {
 public:
  // Imports, optimizes and partitions the model. After an error, stage() gives the failed stage.
  Status load(const std::string& path);

  const graph::Graph& graph() const { return model_.graph; }
  const graph::Partition& partition() const { return model_.partition; }

  // Returns the outputs of one run, made as `tensorsmith compile` and the C interface make it: a
  // compiled model is written to the directory, loaded and run twice on buffers with canaries
  // around them, with outputs filled with other bytes before each run. It is an error if the
  // outputs of the two runs differ (not written, or not deterministic) or a canary changed; a write
  // to an input crashes. `traces` receives the printed random schedules; may be null. After an
  // error, stage() gives the failed stage.
  Result<std::vector<lower::Tensor>> run(const RunRequest& request, const std::vector<lower::Tensor>& inputs,
                                         const std::string& directory, std::vector<std::string>* traces);

  const std::string& stage() const { return stage_; }

 private:
  Result<std::vector<engine::TaskSchedule>> random_schedules(const target::Device& device, uint64_t seed);
  Result<std::vector<lower::Tensor>> execute(const std::vector<lower::Tensor>& inputs,
                                             const std::string& directory, int threads);

  engine::LoadedModel model_;
  std::string stage_;
  std::map<std::string, engine::BuildCache> caches_;  // by code_key()
};

}  // namespace tensorsmith::oracle

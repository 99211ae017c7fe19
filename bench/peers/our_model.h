// Our side of a comparison: a model of one operator, as a user gets it: imported, partitioned, tuned or not,
// compiled to a directory, loaded and run by the runtime.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/sinks.h"
#include "cases.h"
#include "engine/model/compile_model.h"
#include "peer.h"
#include "record/database.h"
#include "runtime/model.h"
#include "target/target.h"

namespace tensorsmith::peers {

// B is a run-time input or compiled in.
Result<engine::LoadedModel> gemm_model(const GemmCase& shape, const Floats& b);
// The residual is a second input.
Result<engine::LoadedModel> conv_model(const ConvCase& shape, const ConvData& data);

struct TuneBudget {
  double seconds = 0;  // 0 = only what the database has
  std::vector<std::string> worker_command;
  uint64_t seed = 0;
};

struct BestKnown {
  double elapsed = 0;  // seconds since tuning began
  double seconds = 0;  // of the model's tasks
};

// Tunes the model's tasks: records go to the database, from where a later run goes on. Returns how the best
// known latency fell.
Result<std::vector<BestKnown>> tune(const engine::LoadedModel& model, const target::Device& device,
                                    const TuneBudget& budget, record::Database& database, LogSink& log);

struct Chosen {
  std::vector<engine::TaskSchedule> schedules;
  std::string algorithm;  // the sketches' descriptions
  bool tuned = false;
};
// The untuned schedules, or those of the database's fastest records (database may be null).
Result<Chosen> choose(const engine::LoadedModel& model, const target::Device& device,
                      record::Database* database);

// A compiled model and its tensors.
class OurModel {
 public:
  static Result<std::unique_ptr<OurModel>> compile(const engine::LoadedModel& model,
                                                   const target::Device& device, const Chosen& chosen,
                                                   const std::vector<const Floats*>& inputs);
  Status run();
  // The last run's result.
  Floats output() const;

 private:
  using Shorts = std::vector<uint16_t, CacheLineAllocator<uint16_t>>;

  std::unique_ptr<runtime::Model> model_;
  bool short_floats_ = false;  // inputs and output are bf16
  std::deque<Shorts> shorts_;
  std::vector<const void*> inputs_;
  Floats result_;
};

}  // namespace tensorsmith::peers

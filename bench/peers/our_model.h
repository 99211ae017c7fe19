// Tensorsmith's side of a comparison: a model of one operator, which takes a user's path: import,
// partition, optional tuning, compilation to a directory, and execution by the runtime.
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

// Model of a matrix product. B is a run-time input, or a constant of the model if the shape says so.
Result<engine::LoadedModel> gemm_model(const GemmCase& shape, const Floats& b);
// Model of a convolution. A residual is the second input.
Result<engine::LoadedModel> conv_model(const ConvCase& shape, const ConvData& data);

struct TuneBudget {
  double seconds = 0;  // 0 = no tuning, only records of the database
  std::vector<std::string> worker_command;
  uint64_t seed = 0;
};

struct BestKnown {
  double elapsed = 0;  // seconds since tuning began
  double seconds = 0;  // latency of the model's tasks with the best known programs
};

// Tunes the model's tasks and stores the records in the database, where a later run continues. Returns
// how the best known latency decreased over time.
Result<std::vector<BestKnown>> tune(const engine::LoadedModel& model, const target::Device& device,
                                    const TuneBudget& budget, record::Database& database, LogSink& log);

struct Chosen {
  std::vector<engine::TaskSchedule> schedules;
  std::string algorithm;  // descriptions of the chosen sketches
  bool tuned = false;
};
// Returns the schedules of the database's fastest records, or the untuned schedules where it has none or
// is null.
Result<Chosen> choose(const engine::LoadedModel& model, const target::Device& device,
                      record::Database* database);

// A compiled model with its input and output tensors.
class OurModel {
 public:
  static Result<std::unique_ptr<OurModel>> compile(const engine::LoadedModel& model,
                                                   const target::Device& device, const Chosen& chosen,
                                                   const std::vector<const Floats*>& inputs);
  Status run();
  // Returns the result of the last run.
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

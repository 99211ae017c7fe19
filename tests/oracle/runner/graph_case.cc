#include "graph_case.h"

#include <algorithm>
#include <cstring>

#include "base/rng.h"
#include "graph/evaluate.h"
#include "measure/guarded_memory.h"
#include "runtime/tensorsmith.h"
#include "space/design_space.h"

namespace tensorsmith::oracle {
namespace {

constexpr int kSampleAttempts = 20;

// Returns the attributes that machine code depends on: "local" is the best of the named instruction
// sets, and threads change only the schedule.
std::string code_key(const target::Device& device) {
  std::string key = device.arch + " " + device.processor + " " + std::to_string(device.cpu().vector_bytes) +
                    " " + std::to_string(device.cpu().vector_registers);
  for (const std::string& feature : device.features) key += " " + feature;
  return key;
}

// Frees a loaded model.
struct ModelDeleter {
  void operator()(ts_model* model) const { ts_model_free(model); }
};

}  // namespace

using lower::Tensor;

Status GraphCase::load(const std::string& path) {
  stage_ = "import";
  TS_ASSIGN_OR_RETURN(model_.graph, graph::import_onnx(path, {}));
  stage_ = "optimize";
  TS_RETURN_IF_ERROR(graph::optimize(model_.graph));
  stage_ = "partition";
  TS_ASSIGN_OR_RETURN(model_.partition, graph::partition(model_.graph));
  model_.memory = graph::plan_memory(model_.graph, model_.partition);
  return {};
}

Result<std::vector<Tensor>> GraphCase::run(const RunRequest& request, const std::vector<Tensor>& inputs,
                                           const std::string& directory, std::vector<std::string>* traces) {
  if (request.schedule == ScheduleKind::kInterpreter) {
    stage_ = "evaluate";
    return graph::evaluate(model_.graph, inputs);
  }
  stage_ = "schedule";
  TS_ASSIGN_OR_RETURN(target::Device device, target::find_device(request.device));
  device.cpu().cores = request.threads;
  std::vector<engine::TaskSchedule> schedules;
  if (request.schedule == ScheduleKind::kRandom) {
    TS_ASSIGN_OR_RETURN(schedules, random_schedules(device, request.seed));
    if (traces != nullptr) {
      for (const auto& schedule : schedules) traces->push_back(sched::print(schedule.trace));
    }
  } else {
    TS_ASSIGN_OR_RETURN(schedules, engine::default_schedules(model_.partition, device));
  }
  stage_ = "compile";
  engine::CompileOptions options;
  options.directory = directory;
  options.model_name = "case";
  options.cache = &caches_[code_key(device)];
  TS_RETURN_IF_ERROR(engine::compile_model(model_, device, schedules, options));
  return execute(inputs, directory, request.threads);
}

// Returns a random candidate for each task; the default schedule if none of a few candidates is
// legal.
Result<std::vector<engine::TaskSchedule>> GraphCase::random_schedules(const target::Device& device,
                                                                      uint64_t seed) {
  Rng rng(seed);
  std::vector<engine::TaskSchedule> schedules;
  for (const graph::Task& task : model_.partition.tasks) {
    TS_ASSIGN_OR_RETURN(const auto space, space::DesignSpace::build(task.workload, device, {}));
    space::Candidate candidate = space.sample(rng);
    for (int attempt = 1; attempt < kSampleAttempts && !space.check(candidate).ok(); ++attempt)
      candidate = space.sample(rng);
    if (!space.check(candidate).ok()) candidate = space.default_candidate();
    TS_ASSIGN_OR_RETURN(sched::Trace trace, space.to_trace(candidate));
    schedules.push_back({std::move(trace)});
  }
  return schedules;
}

Result<std::vector<Tensor>> GraphCase::execute(const std::vector<Tensor>& inputs,
                                               const std::string& directory, int threads) {
  stage_ = "load";
  ts_model* loaded = nullptr;
  if (ts_model_load(directory.c_str(), threads, &loaded) != TS_OK) {
    return Error{ErrorCode::kCorrupt, "ts_model_load", ts_last_error()};
  }
  const std::unique_ptr<ts_model, ModelDeleter> model(loaded);
  stage_ = "run";
  if (ts_model_num_inputs(loaded) != inputs.size() ||
      ts_model_num_outputs(loaded) != model_.graph.outputs.size()) {
    return Error{ErrorCode::kMismatch, "compiled model", "has another number of inputs or outputs"};
  }
  std::vector<measure::GuardedBuffer> memory;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Tensor& input : inputs) {
    TS_ASSIGN_OR_RETURN(auto buffer,
                        measure::GuardedBuffer::allocate(static_cast<int64_t>(input.data.size())));
    buffer.reset(0);
    if (!input.data.empty()) std::memcpy(buffer.data(), input.data.data(), input.data.size());
    TS_RETURN_IF_ERROR(buffer.make_read_only());
    in.push_back(buffer.data());
    memory.push_back(std::move(buffer));
  }
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < model_.graph.outputs.size(); ++i) {
    const auto& value = model_.graph.values[model_.graph.outputs[i]];
    outputs.push_back(Tensor::zeros(value.dtype, value.shape));
    const auto bytes = static_cast<int64_t>(outputs.back().data.size());
    if (ts_model_output_bytes(loaded, i) != static_cast<size_t>(bytes)) {
      return Error{ErrorCode::kMismatch, "output " + std::to_string(i), "has another size in the model"};
    }
    TS_ASSIGN_OR_RETURN(auto buffer, measure::GuardedBuffer::allocate(bytes));
    out.push_back(buffer.data());
    memory.push_back(std::move(buffer));
  }
  for (const unsigned char fill : {0xA5, 0x5A}) {
    for (size_t i = 0; i < out.size(); ++i) memory[in.size() + i].reset(fill);
    if (ts_model_run(loaded, in.data(), out.data()) != TS_OK) {
      return Error{ErrorCode::kCorrupt, "ts_model_run", ts_last_error()};
    }
    for (size_t i = 0; i < out.size(); ++i) {
      const std::string place = "output " + std::to_string(i);
      if (!memory[in.size() + i].canaries_intact()) {
        return Error{ErrorCode::kMismatch, place, "was written out of its bounds"};
      }
      auto& data = outputs[i].data;
      const auto* got = static_cast<const std::byte*>(out[i]);
      if (fill == 0x5A && !std::equal(data.begin(), data.end(), got)) {
        return Error{ErrorCode::kMismatch, place,
                     "differs between two runs: not all of it is written, or not always the same"};
      }
      std::copy(got, got + data.size(), data.begin());
    }
  }
  return outputs;
}

}  // namespace tensorsmith::oracle

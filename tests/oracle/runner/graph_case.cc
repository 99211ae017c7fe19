#include "graph_case.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/rng.h"
#include "graph/evaluate.h"
#include "measure/guarded_memory.h"
#include "runtime/tensorsmith.h"
#include "space/design_space.h"
#include "tools/compile_model.h"

namespace tensorsmith::oracle {
namespace {

namespace fs = std::filesystem;
using lower::Tensor;

constexpr int kSampleAttempts = 20;

// Frees a loaded model.
struct ModelDeleter {
  void operator()(ts_model* model) const { ts_model_free(model); }
};

class GraphCase {
 public:
  explicit GraphCase(const Request& request) : request_(request) {}

  Reply run() {
    try {
      if (Status status = load(); !status.ok()) return failed(status.error());
      for (size_t i = 0; i < request_.runs.size(); ++i) add_run(i);
    } catch (const InternalError& error) {
      reply_.error = error.what();
      reply_.code = "bug";
      if (reply_.stage.empty()) reply_.stage = "run";
    }
    return std::move(reply_);
  }

 private:
  Reply failed(const Error& error) {
    reply_.error = error.message();
    reply_.code = to_string(error.code);
    return std::move(reply_);
  }

  Status load() {
    reply_.stage = "import";
    TS_ASSIGN_OR_RETURN(model_.graph, graph::import_onnx(request_.directory + "/model.onnx", {}));
    reply_.stage = "optimize";
    TS_RETURN_IF_ERROR(graph::optimize(model_.graph));
    reply_.stage = "partition";
    TS_ASSIGN_OR_RETURN(model_.partition, graph::partition(model_.graph));
    model_.memory = graph::plan_memory(model_.graph, model_.partition);
    reply_.stage = "request";
    for (graph::ValueId id : model_.graph.inputs) {
      TS_RETURN_IF_ERROR(read_input(model_.graph.values[static_cast<size_t>(id)]));
    }
    for (graph::ValueId id : model_.graph.outputs) {
      reply_.outputs.push_back(describe(model_.graph.values[static_cast<size_t>(id)]));
    }
    for (const auto& task : model_.partition.tasks) reply_.tasks.push_back(task.name);
    reply_.stage.clear();
    return {};
  }

  static TensorReply describe(const graph::Value& value) {
    return {value.name, std::string(ir::to_string(value.dtype)), value.shape};
  }

  Status read_input(const graph::Value& value) {
    const std::string path = request_.directory + "/input_" + std::to_string(inputs_.size()) + ".bin";
    Tensor tensor = Tensor::zeros(value.dtype, value.shape);
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    if (!in || in.tellg() != static_cast<std::streamoff>(tensor.data.size())) {
      return Error{ErrorCode::kInvalidArgument, path,
                   "does not hold " + std::to_string(tensor.data.size()) + " bytes"};
    }
    in.seekg(0);
    in.read(reinterpret_cast<char*>(tensor.data.data()), static_cast<std::streamsize>(tensor.data.size()));
    inputs_.push_back(std::move(tensor));
    reply_.inputs.push_back(describe(value));
    return {};
  }

  void add_run(size_t number) {
    RunReply reply;
    stage_.clear();
    try {
      auto outputs = outputs_of(request_.runs[number], reply);
      if (outputs.ok()) {
        reply.same_as = keep(number, *std::move(outputs));
      } else {
        reply.stage = stage_;
        reply.error = outputs.error().message();
      }
    } catch (const InternalError& error) {
      reply.stage = stage_;
      reply.error = std::string("bug: ") + error.what();
    }
    reply_.runs.push_back(std::move(reply));
  }

  // The earlier run with the same outputs, or -1 after writing them.
  int keep(size_t number, std::vector<Tensor> outputs) {
    for (const auto& [earlier, known] : outputs_) {
      bool same = true;
      for (size_t i = 0; i < outputs.size(); ++i) same = same && outputs[i].data == known[i].data;
      if (same) return static_cast<int>(earlier);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::ofstream out(request_.directory + "/output_" + std::to_string(number) + "_" + std::to_string(i) +
                            ".bin",
                        std::ios::binary);
      out.write(reinterpret_cast<const char*>(outputs[i].data.data()),
                static_cast<std::streamsize>(outputs[i].data.size()));
    }
    outputs_.emplace(number, std::move(outputs));
    return -1;
  }

  Result<std::vector<Tensor>> outputs_of(const RunRequest& run, RunReply& reply) {
    if (run.schedule == ScheduleKind::kInterpreter) {
      stage_ = "evaluate";
      return graph::evaluate(model_.graph, inputs_);
    }
    stage_ = "schedule";
    TS_ASSIGN_OR_RETURN(target::Device device, target::find_device(run.device));
    device.cores = run.threads;
    TS_ASSIGN_OR_RETURN(auto schedules, tools::default_schedules(model_.partition, device));
    if (run.schedule == ScheduleKind::kRandom) {
      TS_RETURN_IF_ERROR(randomize(device, run.seed, schedules));
      for (const auto& schedule : schedules) reply.schedules.push_back(sched::print(schedule.trace));
    }
    stage_ = "compile";
    tools::CompileOptions options;
    options.directory = request_.directory + "/compiled";
    options.model_name = "case";
    TS_RETURN_IF_ERROR(
        tools::compile_model(model_, device, schedules, with_cache(options, run.device, run.threads)));
    return execute(options.directory, run.threads);
  }

  tools::CompileOptions with_cache(tools::CompileOptions options, const std::string& device, int threads) {
    options.cache = &caches_[{device, threads}];
    return options;
  }

  // A random candidate of each task; the default stays where none of a few is legal.
  Status randomize(const target::Device& device, uint64_t seed, std::vector<tools::TaskSchedule>& schedules) {
    Rng rng(seed);
    for (size_t t = 0; t < schedules.size(); ++t) {
      space::DesignSpace::Options options;
      options.threads = device.cores;
      TS_ASSIGN_OR_RETURN(const auto space, space::DesignSpace::build(model_.partition.tasks[t].workload, device,
                                                                      options));
      for (int attempt = 0; attempt < kSampleAttempts; ++attempt) {
        const space::Candidate candidate = space.sample(rng);
        if (!space.check(candidate).ok()) continue;
        TS_ASSIGN_OR_RETURN(schedules[t].trace, space.to_trace(candidate));
        break;
      }
    }
    return {};
  }

  Result<std::vector<Tensor>> execute(const std::string& directory, int threads) {
    stage_ = "load";
    ts_model* loaded = nullptr;
    if (ts_model_load(directory.c_str(), threads, &loaded) != TS_OK) {
      return Error{ErrorCode::kCorrupt, "ts_model_load", ts_last_error()};
    }
    const std::unique_ptr<ts_model, ModelDeleter> model(loaded);
    stage_ = "run";
    if (ts_model_num_inputs(loaded) != inputs_.size() ||
        ts_model_num_outputs(loaded) != reply_.outputs.size()) {
      return Error{ErrorCode::kMismatch, "compiled model", "has another number of inputs or outputs"};
    }
    std::vector<measure::GuardedBuffer> memory;
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const Tensor& input : inputs_) {
      TS_ASSIGN_OR_RETURN(auto buffer, measure::GuardedBuffer::allocate(static_cast<int64_t>(input.data.size())));
      buffer.reset(0);
      if (!input.data.empty()) std::memcpy(buffer.data(), input.data.data(), input.data.size());
      TS_RETURN_IF_ERROR(buffer.make_read_only());
      in.push_back(buffer.data());
      memory.push_back(std::move(buffer));
    }
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < reply_.outputs.size(); ++i) {
      const auto& value = model_.graph.values[static_cast<size_t>(model_.graph.outputs[i])];
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

  const Request& request_;
  Reply reply_;
  std::string stage_;
  tools::LoadedModel model_;
  std::vector<Tensor> inputs_;
  std::map<size_t, std::vector<Tensor>> outputs_;                     // by run
  std::map<std::pair<std::string, int>, tools::KernelCache> caches_;  // by device and threads
};

}  // namespace

Reply run_case(const Request& request) { return GraphCase(request).run(); }

}  // namespace tensorsmith::oracle

#include "serve.h"

#include <fstream>

#include "graph_case.h"

namespace tensorsmith::oracle {
namespace {

using lower::Tensor;

TensorReply describe(const graph::Value& value) {
  return {value.name, std::string(ir::to_string(value.dtype)), value.shape};
}

Result<Tensor> read_input(const std::string& path, const graph::Value& value) {
  Tensor tensor = Tensor::zeros(value.dtype, value.shape);
  const auto bytes = static_cast<std::streamoff>(tensor.data.size());
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in || in.tellg() != bytes) {
    return Error{ErrorCode::kInvalidArgument, path, "does not hold " + std::to_string(bytes) + " bytes"};
  }
  in.seekg(0);
  in.read(reinterpret_cast<char*>(tensor.data.data()), bytes);
  return tensor;
}

class Service {
 public:
  explicit Service(const Request& request) : request_(request) {}

  Reply run() {
    try {
      const Status status = load();
      if (!status.ok()) {
        reply_.stage = case_.stage();
        reply_.error = status.error().message();
        reply_.code = to_string(status.error().code);
        return std::move(reply_);
      }
      for (size_t i = 0; i < request_.runs.size(); ++i) add_run(i);
    } catch (const InternalError& error) {
      reply_.stage = case_.stage();
      reply_.error = error.what();
      reply_.code = "bug";
    }
    return std::move(reply_);
  }

 private:
  Status load() {
    TS_RETURN_IF_ERROR(case_.load(request_.directory + "/model.onnx"));
    const graph::Graph& graph = case_.graph();
    for (graph::ValueId id : graph.inputs) {
      const graph::Value& value = graph.values[id];
      TS_ASSIGN_OR_RETURN(
          Tensor tensor,
          read_input(request_.directory + "/input_" + std::to_string(inputs_.size()) + ".bin", value));
      inputs_.push_back(std::move(tensor));
      reply_.inputs.push_back(describe(value));
    }
    for (graph::ValueId id : graph.outputs) {
      reply_.outputs.push_back(describe(graph.values[id]));
    }
    for (const auto& task : case_.partition().tasks) reply_.tasks.push_back(task.name);
    return {};
  }

  void add_run(size_t number) {
    RunReply reply;
    try {
      auto outputs =
          case_.run(request_.runs[number], inputs_, request_.directory + "/compiled", &reply.schedules);
      if (outputs.ok()) {
        reply.same_as = keep(number, *std::move(outputs));
      } else {
        reply.stage = case_.stage();
        reply.error = outputs.error().message();
      }
    } catch (const InternalError& error) {
      reply.stage = case_.stage();
      reply.error = std::string("bug: ") + error.what();
    }
    reply_.runs.push_back(std::move(reply));
  }

  // Returns the earlier run with the same outputs, or writes the outputs and returns -1.
  int keep(size_t number, std::vector<Tensor> outputs) {
    for (const auto& [earlier, known] : outputs_) {
      bool same = true;
      for (size_t i = 0; i < outputs.size(); ++i) same = same && outputs[i].data == known[i].data;
      if (same) return static_cast<int>(earlier);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string name = "/output_" + std::to_string(number) + "_" + std::to_string(i) + ".bin";
      std::ofstream out(request_.directory + name, std::ios::binary);
      out.write(reinterpret_cast<const char*>(outputs[i].data.data()),
                static_cast<std::streamsize>(outputs[i].data.size()));
    }
    outputs_.emplace(number, std::move(outputs));
    return -1;
  }

  const Request& request_;
  Reply reply_;
  GraphCase case_;
  std::vector<Tensor> inputs_;
  std::map<size_t, std::vector<Tensor>> outputs_;  // by run
};

}  // namespace

Reply serve(const Request& request) { return Service(request).run(); }

}  // namespace tensorsmith::oracle

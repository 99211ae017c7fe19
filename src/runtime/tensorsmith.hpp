// C++17 wrapper of tensorsmith.h: owns the model, and throws std::runtime_error with the library's
// message.
//
//   tensorsmith_runtime::Model model("model.tsm");
//   std::vector<float> image(...), scores(model.output(0).bytes / sizeof(float));
//   model.run({image.data()}, {scores.data()});
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tensorsmith.h"

namespace tensorsmith_runtime {

class Error : public std::runtime_error {
 public:
  explicit Error(ts_status status) : std::runtime_error(ts_last_error()), status_(status) {}
  ts_status status() const { return status_; }

 private:
  ts_status status_;
};

struct Tensor {
  std::string name;
  ts_dtype dtype = TS_F32;
  std::vector<int64_t> shape;
  size_t bytes = 0;
};

class Model {
 public:
  // num_threads includes the caller of run(); 0 = one per core, see ts_model_load.
  explicit Model(const std::string& directory, int num_threads = 0) {
    ts_model* model = nullptr;
    check(ts_model_load(directory.c_str(), num_threads, &model));
    take(model);
  }
  // Loads a model that was compiled for GPUs on the named one, see ts_model_load_on.
  static Model on(const std::string& directory, const std::string& device) {
    ts_model* model = nullptr;
    check(ts_model_load_on(directory.c_str(), device.c_str(), &model));
    Model made;
    made.take(model);
    return made;
  }

  std::string name() const { return ts_model_name(model_.get()); }
  int num_threads() const { return ts_model_num_threads(model_.get()); }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  const Tensor& input(size_t i) const { return inputs_.at(i); }
  const Tensor& output(size_t i) const { return outputs_.at(i); }

  // One pointer per tensor, in order; each points to as many bytes as the tensor's `bytes`.
  void run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
    if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size())
      throw std::invalid_argument("run: one pointer is needed for each input and output");
    check(ts_model_run(model_.get(), inputs.data(), outputs.data()));
  }

  // Binds tensors to memory of the GPU, see ts_model_bind_input; nullptr: the tensor is copied
  // again.
  void bind_input(size_t i, void* memory) { check(ts_model_bind_input(model_.get(), i, memory)); }
  void bind_output(size_t i, void* memory) { check(ts_model_bind_output(model_.get(), i, memory)); }
  void* device_context() const { return ts_model_device_context(model_.get()); }

 private:
  Model() = default;
  struct Free {
    void operator()(ts_model* model) const { ts_model_free(model); }
  };
  static void check(ts_status status) {
    if (status != TS_OK) throw Error(status);
  }
  void take(ts_model* model) {
    model_.reset(model);
    for (size_t i = 0; i < ts_model_num_inputs(model); ++i) {
      inputs_.push_back(describe(ts_model_input_name(model, i), ts_model_input_dtype(model, i),
                                 ts_model_input_dims(model, i), ts_model_input_rank(model, i),
                                 ts_model_input_bytes(model, i)));
    }
    for (size_t i = 0; i < ts_model_num_outputs(model); ++i) {
      outputs_.push_back(describe(ts_model_output_name(model, i), ts_model_output_dtype(model, i),
                                  ts_model_output_dims(model, i), ts_model_output_rank(model, i),
                                  ts_model_output_bytes(model, i)));
    }
  }
  static Tensor describe(const char* name, ts_dtype dtype, const int64_t* dims, int rank, size_t bytes) {
    return {name, dtype, std::vector<int64_t>(dims, dims + rank), bytes};
  }

  std::unique_ptr<ts_model, Free> model_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
};

}  // namespace tensorsmith_runtime

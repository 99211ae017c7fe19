#include "runtime/device/gpu_model.h"

#include <algorithm>
#include <map>

#include "base/floor_div.h"

namespace tensorsmith::runtime {

namespace {

Error in_call(const CallInfo& call, Error error) {
  error.place = "kernel '" + call.symbol + "'" + (error.place.empty() ? "" : ", " + error.place);
  return error;
}

}  // namespace

Result<std::unique_ptr<GpuModel>> GpuModel::create(std::unique_ptr<Gpu> gpu,
                                                   const ModelDescription& description,
                                                   std::span<const char> kernels,
                                                   std::span<const std::byte* const> weights) {
  std::unique_ptr<GpuModel> model(new GpuModel(std::move(gpu), description));
  TS_RETURN_IF_ERROR(model->place(weights));
  TS_RETURN_IF_ERROR(model->load(kernels));
  TS_RETURN_IF_ERROR(model->make_sequences());
  return model;
}

// All memory is allocated here, so that a model that does not fit fails before its first run.
Status GpuModel::place(std::span<const std::byte* const> weights) {
  const ModelDescription& d = description_;
  const auto allocate = [&](int64_t bytes) { return gpu_->allocate(std::max<int64_t>(bytes, 1)); };
  TS_ASSIGN_OR_RETURN(arena_, allocate(d.arena_bytes));
  for (const TensorInfo& tensor : d.inputs) {
    TS_ASSIGN_OR_RETURN(auto memory, allocate(tensor.bytes()));
    inputs_.push_back({std::move(memory)});
  }
  for (const TensorInfo& tensor : d.outputs) {
    TS_ASSIGN_OR_RETURN(auto memory, allocate(tensor.bytes()));
    outputs_.push_back({std::move(memory)});
  }
  int64_t workspace = 0;
  for (const CallInfo& call : d.calls)
    workspace = std::max(workspace, gpu_->workspace_bytes(call.launches, call.shared_workspace_bytes));
  TS_ASSIGN_OR_RETURN(workspace_, allocate(workspace));
  // Weights are aligned as the device requires, which the file does not guarantee.
  int64_t total = 0;
  for (const WeightInfo& weight : d.weights) {
    weight_offset_.push_back(total);
    total += round_up(weight.bytes, kGpuOffsetAlignment);
  }
  TS_ASSIGN_OR_RETURN(weights_, allocate(total));
  for (size_t w = 0; w < d.weights.size(); ++w) {
    const int64_t bytes = d.weights[w].bytes;
    if (bytes > 0) TS_RETURN_IF_ERROR(gpu_->copy_in({weights_.get(), weight_offset_[w], bytes}, weights[w]));
  }
  return {};
}

Result<GpuSpan> GpuModel::span_of(const BufferRef& buffer) const {
  const auto index = buffer.index;
  GpuSpan span;
  switch (buffer.kind) {
    case BufferKind::kInput:
      span = {inputs_[index].memory.get(), buffer.begin, buffer.bytes};
      break;
    case BufferKind::kOutput:
      span = {outputs_[index].memory.get(), buffer.begin, buffer.bytes};
      break;
    case BufferKind::kArena:
      span = {arena_.get(), buffer.index, buffer.bytes};
      break;
    case BufferKind::kWeight:
      span = {weights_.get(), weight_offset_[index], buffer.bytes};
      break;
  }
  if (span.offset % gpu_->offset_alignment() == 0) return span;
  return Error{ErrorCode::kUnsupported, "",
               "a buffer begins at byte " + std::to_string(span.offset) +
                   ", but this device requires multiples of " + std::to_string(gpu_->offset_alignment()) +
                   "; compile the model for this device"};
}

Status GpuModel::load(std::span<const char> kernels) {
  std::map<int64_t, GpuModule*> loaded;  // by position in the file; calls of one task share a module
  for (const CallInfo& call : description_.calls) {
    module_of_.push_back(nullptr);
    if (call.launches.empty()) continue;
    if (call.module_begin + call.module_bytes > std::ssize(kernels))
      return in_call(call,
                     {ErrorCode::kCorrupt, "", "its module extends beyond the end of the kernels file"});
    GpuModule*& module = loaded[call.module_begin];
    if (module == nullptr) {
      auto made = gpu_->load(kernels.subspan(call.module_begin, call.module_bytes));
      if (!made.ok()) return in_call(call, made.error());
      modules_.push_back(std::move(made).value());
      module = modules_.back().get();
    }
    module_of_.back() = module;
  }
  return {};
}

// Launches contain the addresses of inputs and outputs, so they are made again when those change.
Status GpuModel::make_sequences() {
  calls_.clear();
  TS_ASSIGN_OR_RETURN(auto all, gpu_->make_sequence());
  for (size_t c = 0; c < description_.calls.size(); ++c) {
    const CallInfo& call = description_.calls[c];
    if (module_of_[c] == nullptr) continue;
    std::vector<GpuSpan> buffers;
    for (const BufferRef& buffer : call.buffers) {
      auto span = span_of(buffer);
      if (!span.ok()) return in_call(call, span.error());
      buffers.push_back(*span);
    }
    TS_ASSIGN_OR_RETURN(auto alone, gpu_->make_sequence());
    for (GpuSequence* sequence : {all.get(), alone.get()}) {
      const Status added = sequence->add(*module_of_[c], call.launches, buffers, workspace_->all());
      if (!added.ok()) return in_call(call, added.error());
    }
    calls_.push_back(std::move(alone));
  }
  all_ = std::move(all);
  return {};
}

Status GpuModel::bind(Tensor& tensor, const TensorInfo& info, void* handle) {
  if (handle == nullptr && !tensor.borrowed) return {};
  auto memory = handle != nullptr ? gpu_->borrow(handle, info.bytes())
                                  : gpu_->allocate(std::max<int64_t>(info.bytes(), 1));
  if (!memory.ok()) {
    Error error = memory.error();
    error.place = "tensor '" + info.name + "', " + error.place;
    return error;
  }
  TS_RETURN_IF_ERROR(gpu_->synchronize());
  all_ = nullptr;
  calls_.clear();
  tensor = {std::move(memory).value(), handle != nullptr};
  return {};
}

Status GpuModel::copy_in(std::span<const void* const> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t bytes = description_.inputs[i].bytes();
    if (bytes == 0 || inputs_[i].borrowed) continue;
    TS_RETURN_IF_ERROR(gpu_->copy_in({inputs_[i].memory.get(), 0, bytes}, inputs[i]));
  }
  return {};
}

Status GpuModel::copy_out(std::span<void* const> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int64_t bytes = description_.outputs[i].bytes();
    if (bytes == 0 || outputs_[i].borrowed) continue;
    TS_RETURN_IF_ERROR(gpu_->copy_out({outputs_[i].memory.get(), 0, bytes}, outputs[i]));
  }
  return gpu_->synchronize();
}

Status GpuModel::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                     double& device_seconds) {
  TS_RETURN_IF_ERROR(prepare());
  TS_RETURN_IF_ERROR(copy_in(inputs));
  if (!calls_.empty()) {
    TS_ASSIGN_OR_RETURN(device_seconds, all_->time());
  }
  return copy_out(outputs);
}

Status GpuModel::run_timed(std::span<const void* const> inputs, std::span<void* const> outputs,
                           std::vector<double>& seconds) {
  TS_RETURN_IF_ERROR(prepare());
  TS_RETURN_IF_ERROR(copy_in(inputs));
  seconds.clear();
  size_t next = 0;
  for (const CallInfo& call : description_.calls) {
    seconds.push_back(0);
    if (call.launches.empty()) continue;
    TS_ASSIGN_OR_RETURN(seconds.back(), calls_[next++]->time());
  }
  return copy_out(outputs);
}

}  // namespace tensorsmith::runtime

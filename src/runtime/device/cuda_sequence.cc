#include "runtime/device/cuda_sequence.h"

#include <memory>
#include <string_view>
#include <vector>

#include "runtime/device/cuda_tensor_map.h"
#include "runtime/device/launch_checks.h"
#include "runtime/kernel_abi.h"

namespace tensorsmith::runtime::cuda {
namespace {

// A kernel that runs for 40 us, in which a process can launch a graph of some hundred kernels.
constexpr std::string_view kHoldPtx = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry hold()
{
  .reg .pred %p<2>;
  .reg .b64 %rd<4>;
  mov.u64 %rd1, %globaltimer;
WAIT:
  mov.u64 %rd2, %globaltimer;
  sub.u64 %rd3, %rd2, %rd1;
  setp.lt.u64 %p1, %rd3, 40000;
  @%p1 bra WAIT;
  ret;
}
)";

struct Step {
  std::string symbol;
  Function function = nullptr;
  std::array<unsigned, 3> grid, block;
  unsigned shared_bytes = 0;
  std::vector<Address> arguments;  // for arguments that are plain pointers
  std::vector<std::unique_ptr<const EncodedMap>> maps;
  std::vector<void*> values;  // pointers to the arguments and maps, in order
};

std::array<unsigned, 3> narrow(const std::array<int64_t, 3>& extents) {
  return {static_cast<unsigned>(extents[0]), static_cast<unsigned>(extents[1]),
          static_cast<unsigned>(extents[2])};
}

class CudaSequence final : public GpuSequence {
 public:
  explicit CudaSequence(CudaShared& shared) : shared_(shared) {}
  ~CudaSequence() override;

  Status add(const GpuModule& module, std::span<const Launch> launches, std::span<const GpuSpan> buffers,
             GpuSpan workspace) override {
    TS_CHECK(!graph_, "add() was called after a run");
    TS_RETURN_IF_ERROR(
        check_launches(shared_.properties, TENSORSMITH_BUFFER_ALIGNMENT, launches, buffers, workspace, 1));
    TS_RETURN_IF_ERROR(shared_.enter());
    for (const Launch& launch : launches)
      TS_RETURN_IF_ERROR(add_one(static_cast<const CudaModule&>(module), launch, buffers, workspace));
    return {};
  }

  Status run() override {
    TS_RETURN_IF_ERROR(shared_.enter());
    TS_RETURN_IF_ERROR(make_graph());
    return start();
  }

  Result<double> time() override;

 private:
  const Api& api() const { return *shared_.api; }
  Status add_one(const CudaModule& module, const Launch& launch, std::span<const GpuSpan> buffers,
                 const GpuSpan& workspace);
  Status prepare_function(Function function, const Launch& launch);
  Status launch_all();
  // Makes a graph of the launches if there is more than one; done once.
  Status make_graph();
  Status start() {
    return graph_ ? shared_.check(api().launch_graph(graph_, shared_.stream), "cuGraphLaunch") : launch_all();
  }

  CudaShared& shared_;
  std::vector<Step> steps_;
  GraphExec graph_ = nullptr;
  Event begin_ = nullptr, end_ = nullptr;
};

CudaSequence::~CudaSequence() {
  if (!shared_.enter().ok()) return;
  if (graph_) api().destroy_graph_exec(graph_);
  if (begin_) api().destroy_event(begin_);
  if (end_) api().destroy_event(end_);
}

// A kernel gets more than 48 KiB of dynamic shared memory (less its static shared memory) only on
// request. Another launch of the same kernel may have requested more.
Status CudaSequence::prepare_function(Function function, const Launch& launch) {
  int threads = 0, dynamic = 0, declared = 0;
  TS_RETURN_IF_ERROR(shared_.check(api().get_function_attribute(&threads, kFunctionMaxThreads, function),
                                   "cuFuncGetAttribute"));
  const int64_t block = launch.block[0] * launch.block[1] * launch.block[2];
  if (block > threads) {
    return Error{ErrorCode::kUnsupported, "kernel " + launch.symbol,
                 "a block of " + std::to_string(block) +
                     " threads; with its registers the device can run at most " + std::to_string(threads)};
  }
  TS_RETURN_IF_ERROR(shared_.check(api().get_function_attribute(&declared, kFunctionSharedBytes, function),
                                   "cuFuncGetAttribute"));
  if (declared + launch.shared_bytes > shared_.properties.shared_memory_per_block) {
    return Error{ErrorCode::kUnsupported, "kernel " + launch.symbol,
                 "needs " + std::to_string(declared + launch.shared_bytes) +
                     " bytes of shared memory; the device has " +
                     std::to_string(shared_.properties.shared_memory_per_block)};
  }
  TS_RETURN_IF_ERROR(shared_.check(
      api().get_function_attribute(&dynamic, kFunctionMaxDynamicShared, function), "cuFuncGetAttribute"));
  if (launch.shared_bytes <= dynamic) return {};
  return shared_.check(api().set_function_attribute(function, kFunctionMaxDynamicShared, launch.shared_bytes),
                       "cuFuncSetAttribute for kernel " + launch.symbol);
}

Status CudaSequence::add_one(const CudaModule& module, const Launch& launch, std::span<const GpuSpan> buffers,
                             const GpuSpan& workspace) {
  Step step;
  step.symbol = launch.symbol;
  const int code = api().get_function(&step.function, module.get(), launch.symbol.c_str());
  if (code == kNotFound) {
    return Error{ErrorCode::kNotFound, "kernel " + launch.symbol, "the module has no such kernel"};
  }
  TS_RETURN_IF_ERROR(shared_.check(code, "cuModuleGetFunction"));
  TS_RETURN_IF_ERROR(prepare_function(step.function, launch));
  step.grid = narrow(launch.grid);
  step.block = narrow(launch.block);
  step.shared_bytes = launch.shared_bytes;
  step.arguments.reserve(launch.arguments.size());
  for (const LaunchArgument& argument : launch.arguments) {
    GpuSpan span = workspace;
    if (argument.buffer >= 0) {
      span = buffers[argument.buffer];
    } else {
      span.offset += argument.workspace_offset;
      span.bytes -= argument.workspace_offset;
    }
    if (argument.map) {
      TS_ASSIGN_OR_RETURN(const EncodedMap map, encode(shared_, *argument.map, span));
      step.maps.push_back(std::make_unique<const EncodedMap>(map));
      step.values.push_back(const_cast<EncodedMap*>(step.maps.back().get()));
    } else {
      step.values.push_back(&step.arguments.emplace_back(address_of(span)));
    }
  }
  steps_.push_back(std::move(step));
  return {};
}

Status CudaSequence::launch_all() {
  for (Step& step : steps_) {
    const int code =
        api().launch(step.function, step.grid[0], step.grid[1], step.grid[2], step.block[0], step.block[1],
                     step.block[2], step.shared_bytes, shared_.stream, step.values.data(), nullptr);
    TS_RETURN_IF_ERROR(shared_.check(code, "cuLaunchKernel of " + step.symbol));
  }
  return {};
}

Status CudaSequence::make_graph() {
  if (graph_ || steps_.size() < 2) return {};
  TS_RETURN_IF_ERROR(
      shared_.check(api().begin_capture(shared_.stream, kCaptureRelaxed), "cuStreamBeginCapture"));
  const Status launched = launch_all();
  Graph graph = nullptr;
  // The capture is ended after an error, too, so that the stream leaves capture mode.
  const int code = api().end_capture(shared_.stream, &graph);
  Status status = launched.ok() ? shared_.check(code, "cuStreamEndCapture") : launched;
  if (status.ok()) status = shared_.check(api().instantiate(&graph_, graph, 0), "cuGraphInstantiate");
  if (graph) api().destroy_graph(graph);
  return status;
}

Result<double> CudaSequence::time() {
  if (steps_.empty()) return 0.0;
  TS_RETURN_IF_ERROR(shared_.enter());
  TS_RETURN_IF_ERROR(make_graph());
  for (Event* event : {&begin_, &end_}) {
    if (!*event) TS_RETURN_IF_ERROR(shared_.check(api().create_event(event, kEventDefault), "cuEventCreate"));
  }
  TS_RETURN_IF_ERROR(shared_.start_timing(begin_));
  TS_RETURN_IF_ERROR(start());
  TS_RETURN_IF_ERROR(shared_.check(api().record_event(end_, shared_.stream), "cuEventRecord"));
  TS_RETURN_IF_ERROR(shared_.check(api().synchronize_event(end_), "cuEventSynchronize"));
  float milliseconds = 0;
  TS_RETURN_IF_ERROR(shared_.check(api().get_elapsed_ms(&milliseconds, begin_, end_), "cuEventElapsedTime"));
  return 1e-3 * milliseconds;
}

}  // namespace

CudaShared::~CudaShared() {
  if (!context || !enter().ok()) return;
  if (stream) {
    api->synchronize_stream(stream);
    api->destroy_stream(stream);
  }
  if (hold_module) api->unload_module(hold_module);
  api->release_context(device);
}

Status CudaShared::enter() { return check(api->set_context(context), "cuCtxSetCurrent"); }

Status CudaShared::start_timing(Event begin) {
  if (!hold) {
    const std::string text(kHoldPtx);
    TS_RETURN_IF_ERROR(check(api->load_module(&hold_module, text.c_str()), "cuModuleLoadData"));
    TS_RETURN_IF_ERROR(check(api->get_function(&hold, hold_module, "hold"), "cuModuleGetFunction"));
  }
  TS_RETURN_IF_ERROR(
      check(api->launch(hold, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), "cuLaunchKernel"));
  return check(api->record_event(begin, stream), "cuEventRecord");
}

Status CudaShared::check(int code, const std::string& call) {
  if (code == kSuccess) return {};
  lost = lost || breaks_context(code);
  if (lost) return Error{ErrorCode::kMismatch, properties.name, "a kernel failed: " + api->error_text(code)};
  const bool exhausted = code == kOutOfMemory || code == kLaunchOutOfResources;
  return Error{exhausted ? ErrorCode::kResourceExhausted : ErrorCode::kIo, properties.name,
               call + " says " + api->error_text(code)};
}

Address address_of(const GpuSpan& span) {
  return static_cast<const CudaMemory*>(span.memory)->address() + static_cast<Address>(span.offset);
}

Result<std::unique_ptr<GpuSequence>> make_sequence(CudaShared& shared) {
  return std::unique_ptr<GpuSequence>(std::make_unique<CudaSequence>(shared));
}

}  // namespace tensorsmith::runtime::cuda

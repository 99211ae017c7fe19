// GPUs through OpenCL 1.2 and newer. A module is the text of an OpenCL C program; an offset in the
// workspace is a sub-buffer (Gpu::workspace_scale). If Launch::shared_bytes > 0, the kernel's last
// argument is a __local pointer to that many bytes.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "runtime/device/driver_library.h"
#include "runtime/device/launch_checks.h"
#include "runtime/device/opencl_api.h"
#include "runtime/device/opencl_devices.h"

namespace tensorsmith::runtime {
namespace {

using opencl::Api;

// -cl-std names a version that every driver has. No option relaxes floating point.
constexpr const char* kBuildOptions = "-cl-std=CL1.2";

// A driver object that is released with this one.
template <typename T>
class Owned {
 public:
  Owned() = default;
  Owned(T object, int32_t (*release)(T)) : object_(object), release_(release) {}
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)), release_(other.release_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Owned() {
    if (object_) release_(object_);
  }
  T get() const { return object_; }

 private:
  T object_ = nullptr;
  int32_t (*release_)(T) = nullptr;
};

ErrorCode code_of(int32_t code) {
  switch (code) {
    case opencl::kMemoryAllocationFailure:
    case opencl::kOutOfResources:
    case opencl::kOutOfHostMemory:
    case opencl::kInvalidBufferSize:
      return ErrorCode::kResourceExhausted;
    case opencl::kInvalidWorkGroupSize:
    case opencl::kInvalidWorkItemSize:
      return ErrorCode::kUnsupported;
    case opencl::kInvalidKernelName:
      return ErrorCode::kNotFound;
    default:
      return ErrorCode::kIo;
  }
}

Status check(int32_t code, const std::string& place, const char* call) {
  if (code == opencl::kSuccess) return {};
  return Error{code_of(code), place, std::string(call) + " says " + opencl::error_text(code)};
}

// State that all objects of one device share.
struct Shared {
  std::shared_ptr<const Api> api;
  opencl::Device device = nullptr;
  GpuProperties properties;
  int64_t offset_alignment = 1;
  Owned<opencl::Context> context;
  Owned<opencl::Queue> queue;
  bool lost = false;

  // Errors of the device become visible when the host waits for it.
  Status waited(int32_t code, const char* call) {
    Status status = check(code, properties.name, call);
    if (status.ok()) return status;
    lost = true;
    return Error{ErrorCode::kMismatch, status.error().place, "a kernel failed: " + status.error().reason};
  }
};

class OpenClMemory final : public GpuMemory {
 public:
  OpenClMemory(Owned<opencl::Memory> memory, int64_t bytes) : memory_(std::move(memory)), bytes_(bytes) {}
  int64_t bytes() const override { return bytes_; }
  opencl::Memory get() const { return memory_.get(); }

 private:
  Owned<opencl::Memory> memory_;
  int64_t bytes_;
};

opencl::Memory memory_of(const GpuSpan& span) { return static_cast<const OpenClMemory*>(span.memory)->get(); }

class OpenClModule final : public GpuModule {
 public:
  explicit OpenClModule(Owned<opencl::Program> program) : program_(std::move(program)) {}
  opencl::Program get() const { return program_.get(); }

 private:
  Owned<opencl::Program> program_;
};

class OpenClSequence final : public GpuSequence {
 public:
  explicit OpenClSequence(Shared& shared) : shared_(shared) {}

  Status add(const GpuModule& module, std::span<const Launch> launches, std::span<const GpuSpan> buffers,
             GpuSpan workspace) override {
    const int64_t scale = Gpu::workspace_scale(launches, shared_.offset_alignment);
    TS_RETURN_IF_ERROR(
        check_launches(shared_.properties, shared_.offset_alignment, launches, buffers, workspace, scale));
    for (const Launch& launch : launches)
      TS_RETURN_IF_ERROR(
          add_one(static_cast<const OpenClModule&>(module), launch, buffers, workspace, scale));
    return {};
  }

  Status run() override { return enqueue(nullptr, nullptr); }

  Result<double> time() override {
    if (steps_.empty()) return 0.0;
    Owned<opencl::Event> first, last;
    TS_RETURN_IF_ERROR(enqueue(&first, &last));
    TS_RETURN_IF_ERROR(shared_.waited(shared_.api->finish(shared_.queue.get()), "clFinish"));
    uint64_t start = 0, end = 0;
    const auto read = [&](const Owned<opencl::Event>& event, uint32_t what, uint64_t& value) {
      return check(shared_.api->get_event_profile(event.get(), what, sizeof value, &value, nullptr),
                   shared_.properties.name, "clGetEventProfilingInfo");
    };
    TS_RETURN_IF_ERROR(read(first, opencl::kProfilingStart, start));
    TS_RETURN_IF_ERROR(read(last.get() ? last : first, opencl::kProfilingEnd, end));
    return 1e-9 * (end - start);
  }

 private:
  struct Step {
    std::string symbol;
    Owned<opencl::Kernel> kernel;
    std::array<size_t, 3> global, local;
  };

  Status add_one(const OpenClModule& module, const Launch& launch, std::span<const GpuSpan> buffers,
                 const GpuSpan& workspace, int64_t scale);
  Status check_kernel(opencl::Kernel kernel, const Launch& launch);
  // Returns the argument's region. In the workspace, it extends to the next value that this launch
  // receives.
  GpuSpan region(const Launch& launch, const LaunchArgument& argument, std::span<const GpuSpan> buffers,
                 const GpuSpan& workspace, int64_t scale);
  Result<opencl::Memory> sub_buffer(const GpuSpan& span);
  Status enqueue(Owned<opencl::Event>* first, Owned<opencl::Event>* last);

  Shared& shared_;
  std::vector<Step> steps_;  // one per launch, because a kernel object holds its arguments
  std::map<std::tuple<opencl::Memory, int64_t, int64_t>, Owned<opencl::Memory>> sub_buffers_;
};

Status OpenClSequence::check_kernel(opencl::Kernel kernel, const Launch& launch) {
  const std::string place = "kernel " + launch.symbol;
  uint32_t arguments = 0;
  TS_RETURN_IF_ERROR(check(
      shared_.api->get_kernel_info(kernel, opencl::kKernelArguments, sizeof arguments, &arguments, nullptr),
      place, "clGetKernelInfo"));
  const size_t given = launch.arguments.size() + (launch.shared_bytes > 0 ? 1 : 0);
  if (arguments != given) {
    return Error{ErrorCode::kInvalidArgument, place,
                 "takes " + std::to_string(arguments) + " arguments, but the launch gives it " +
                     std::to_string(given)};
  }
  size_t threads = 0;
  uint64_t local_bytes = 0;
  const auto ask = [&](uint32_t what, size_t bytes, void* value) {
    return check(shared_.api->get_work_group_info(kernel, shared_.device, what, bytes, value, nullptr), place,
                 "clGetKernelWorkGroupInfo");
  };
  TS_RETURN_IF_ERROR(ask(opencl::kKernelWorkGroupSize, sizeof threads, &threads));
  TS_RETURN_IF_ERROR(ask(opencl::kKernelLocalBytes, sizeof local_bytes, &local_bytes));
  const size_t block = launch.block[0] * launch.block[1] * launch.block[2];
  if (block > threads) {
    return Error{ErrorCode::kUnsupported, place,
                 "a group of " + std::to_string(block) +
                     " work-items; the device can run this kernel with at most " + std::to_string(threads)};
  }
  const auto bytes = static_cast<int64_t>(local_bytes) + launch.shared_bytes;
  if (bytes <= shared_.properties.shared_memory_per_block) return {};
  return Error{ErrorCode::kUnsupported, place,
               "needs " + std::to_string(bytes) + " bytes of local memory; the device has " +
                   std::to_string(shared_.properties.shared_memory_per_block)};
}

GpuSpan OpenClSequence::region(const Launch& launch, const LaunchArgument& argument,
                               std::span<const GpuSpan> buffers, const GpuSpan& workspace, int64_t scale) {
  if (argument.buffer >= 0) return buffers[argument.buffer];
  // The sub-buffers of a launch must not overlap.
  const int64_t begin = argument.workspace_offset * scale;
  int64_t end = workspace.bytes;
  for (const LaunchArgument& other : launch.arguments) {
    const int64_t offset = other.workspace_offset * scale;
    if (other.buffer < 0 && offset > begin) end = std::min(end, offset);
  }
  return {workspace.memory, workspace.offset + begin, end - begin};
}

Result<opencl::Memory> OpenClSequence::sub_buffer(const GpuSpan& span) {
  const opencl::Memory memory = memory_of(span);
  if (span.bytes == 0 || (span.offset == 0 && span.bytes == span.memory->bytes())) return memory;
  Owned<opencl::Memory>& made = sub_buffers_[{memory, span.offset, span.bytes}];
  if (made.get()) return made.get();
  const opencl::Region region{static_cast<size_t>(span.offset), static_cast<size_t>(span.bytes)};
  int32_t code = 0;
  made = {
      shared_.api->create_sub_buffer(memory, opencl::kMemoryReadWrite, opencl::kCreateRegion, &region, &code),
      shared_.api->release_memory};
  TS_RETURN_IF_ERROR(check(code, shared_.properties.name, "clCreateSubBuffer"));
  return made.get();
}

Status OpenClSequence::add_one(const OpenClModule& module, const Launch& launch,
                               std::span<const GpuSpan> buffers, const GpuSpan& workspace, int64_t scale) {
  const std::string place = "kernel " + launch.symbol;
  int32_t code = 0;
  Step step{
      launch.symbol,
      {shared_.api->create_kernel(module.get(), launch.symbol.c_str(), &code), shared_.api->release_kernel},
      {},
      {}};
  if (code == opencl::kInvalidKernelName)
    return Error{ErrorCode::kNotFound, place, "the module has no such kernel"};
  TS_RETURN_IF_ERROR(check(code, place, "clCreateKernel"));
  TS_RETURN_IF_ERROR(check_kernel(step.kernel.get(), launch));
  uint32_t index = 0;
  for (const LaunchArgument& argument : launch.arguments) {
    TS_ASSIGN_OR_RETURN(const opencl::Memory memory,
                        sub_buffer(region(launch, argument, buffers, workspace, scale)));
    TS_RETURN_IF_ERROR(
        check(shared_.api->set_argument(step.kernel.get(), index++, sizeof(opencl::Memory), &memory), place,
              "clSetKernelArg"));
  }
  if (launch.shared_bytes > 0) {
    TS_RETURN_IF_ERROR(
        check(shared_.api->set_argument(step.kernel.get(), index, launch.shared_bytes, nullptr), place,
              "clSetKernelArg"));
  }
  for (size_t i = 0; i < 3; ++i) {
    step.local[i] = launch.block[i];
    step.global[i] = launch.grid[i] * step.local[i];
  }
  steps_.push_back(std::move(step));
  return {};
}

Status OpenClSequence::enqueue(Owned<opencl::Event>* first, Owned<opencl::Event>* last) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    Owned<opencl::Event>* wanted = i == 0 ? first : i + 1 == steps_.size() ? last : nullptr;
    opencl::Event event = nullptr;
    const int32_t code =
        shared_.api->enqueue_kernel(shared_.queue.get(), step.kernel.get(), 3, nullptr, step.global.data(),
                                    step.local.data(), 0, nullptr, wanted ? &event : nullptr);
    if (wanted) *wanted = {event, shared_.api->release_event};
    TS_RETURN_IF_ERROR(check(code, "kernel " + step.symbol, "clEnqueueNDRangeKernel"));
  }
  return check(shared_.api->flush(shared_.queue.get()), shared_.properties.name, "clFlush");
}

class OpenClGpu final : public Gpu {
 public:
  explicit OpenClGpu(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}
  ~OpenClGpu() override {
    if (!shared_->lost) shared_->api->finish(shared_->queue.get());
  }

  const GpuProperties& properties() const override { return shared_->properties; }
  int64_t offset_alignment() const override { return shared_->offset_alignment; }
  bool lost() const override { return shared_->lost; }

  Result<std::unique_ptr<GpuMemory>> allocate(int64_t bytes) override;
  Result<std::unique_ptr<GpuMemory>> borrow(void* handle, int64_t bytes) override;
  void* context() const override { return shared_->context.get(); }
  Status copy_in(GpuSpan to, const void* from) override;
  Status copy_out(GpuSpan from, void* to) override;
  Status fill(GpuSpan span, unsigned char value) override;
  Result<std::unique_ptr<GpuModule>> load(std::span<const char> module) override;
  Result<std::unique_ptr<GpuSequence>> make_sequence() override {
    return std::unique_ptr<GpuSequence>(std::make_unique<OpenClSequence>(*shared_));
  }
  Status synchronize() override { return shared_->waited(api().finish(queue()), "clFinish"); }

 private:
  const Api& api() const { return *shared_->api; }
  opencl::Queue queue() const { return shared_->queue.get(); }
  std::string build_log(opencl::Program program) const;

  std::unique_ptr<Shared> shared_;
};

Result<std::unique_ptr<GpuMemory>> OpenClGpu::allocate(int64_t bytes) {
  const GpuProperties& p = shared_->properties;
  if (bytes < 0 || bytes > p.max_buffer_bytes) {
    return Error{ErrorCode::kResourceExhausted, p.name,
                 "cannot allocate " + std::to_string(bytes) + " bytes; one buffer has at most " +
                     std::to_string(p.max_buffer_bytes)};
  }
  int32_t code = 0;
  Owned<opencl::Memory> memory(api().create_buffer(shared_->context.get(), opencl::kMemoryReadWrite,
                                                   std::max<int64_t>(bytes, 1), nullptr, &code),
                               api().release_memory);
  TS_RETURN_IF_ERROR(check(code, p.name, "clCreateBuffer"));
  return std::unique_ptr<GpuMemory>(std::make_unique<OpenClMemory>(std::move(memory), bytes));
}

Result<std::unique_ptr<GpuMemory>> OpenClGpu::borrow(void* handle, int64_t bytes) {
  const std::string& name = shared_->properties.name;
  const auto refuse = [&](const std::string& reason) {
    return Error{ErrorCode::kInvalidArgument, name, reason};
  };
  auto* const memory = static_cast<opencl::Memory>(handle);
  const auto ask = [&](uint32_t what, size_t bytes_of_it, void* value) {
    return api().get_memory_info(memory, what, bytes_of_it, value, nullptr) == opencl::kSuccess;
  };
  uint32_t type = 0;
  size_t size = 0;
  opencl::Context context = nullptr;
  if (!ask(opencl::kMemoryType, sizeof type, &type) || !ask(opencl::kMemorySize, sizeof size, &size) ||
      !ask(opencl::kMemoryContext, sizeof(void*), &context) || type != opencl::kMemoryIsBuffer)
    return refuse("the memory is not a buffer of OpenCL (cl_mem)");
  if (context != shared_->context.get())
    return refuse("the buffer belongs to another context than the model; create it in the model's context");
  if (static_cast<int64_t>(size) < bytes)
    return refuse("the buffer holds " + std::to_string(size) + " bytes; the tensor has " +
                  std::to_string(bytes));
  TS_RETURN_IF_ERROR(check(api().retain_memory(memory), name, "clRetainMemObject"));
  return std::unique_ptr<GpuMemory>(
      std::make_unique<OpenClMemory>(Owned<opencl::Memory>(memory, api().release_memory), bytes));
}

Status OpenClGpu::copy_in(GpuSpan to, const void* from) {
  TS_RETURN_IF_ERROR(check_span(to, "copy to the device"));
  if (to.bytes == 0) return {};
  return shared_->waited(
      api().enqueue_write(queue(), memory_of(to), 1, to.offset, to.bytes, from, 0, nullptr, nullptr),
      "clEnqueueWriteBuffer");
}

Status OpenClGpu::copy_out(GpuSpan from, void* to) {
  TS_RETURN_IF_ERROR(check_span(from, "copy from the device"));
  if (from.bytes == 0) return synchronize();
  return shared_->waited(
      api().enqueue_read(queue(), memory_of(from), 1, from.offset, from.bytes, to, 0, nullptr, nullptr),
      "clEnqueueReadBuffer");
}

Status OpenClGpu::fill(GpuSpan span, unsigned char value) {
  TS_RETURN_IF_ERROR(check_span(span, "fill"));
  if (span.bytes == 0) return {};
  return check(
      api().enqueue_fill(queue(), memory_of(span), &value, 1, span.offset, span.bytes, 0, nullptr, nullptr),
      shared_->properties.name, "clEnqueueFillBuffer");
}

std::string OpenClGpu::build_log(opencl::Program program) const {
  size_t bytes = 0;
  api().get_build_info(program, shared_->device, opencl::kBuildLog, 0, nullptr, &bytes);
  std::string log(bytes, '\0');
  api().get_build_info(program, shared_->device, opencl::kBuildLog, bytes, log.data(), nullptr);
  return in_one_line(log.c_str());
}

Result<std::unique_ptr<GpuModule>> OpenClGpu::load(std::span<const char> module) {
  const char* text = module.data();
  const size_t bytes = module.size();
  int32_t code = 0;
  Owned<opencl::Program> program(api().create_program(shared_->context.get(), 1, &text, &bytes, &code),
                                 api().release_program);
  TS_RETURN_IF_ERROR(check(code, "OpenCL program", "clCreateProgramWithSource"));
  code = api().build_program(program.get(), 1, &shared_->device, kBuildOptions, nullptr, nullptr);
  if (code != opencl::kSuccess) {
    const std::string log = build_log(program.get());
    return Error{ErrorCode::kCorrupt, "OpenCL program",
                 "the driver does not build it: " + (log.empty() ? opencl::error_text(code) : log)};
  }
  return std::unique_ptr<GpuModule>(std::make_unique<OpenClModule>(std::move(program)));
}

Result<std::vector<GpuProperties>> list_opencl(const std::string& library) {
  TS_ASSIGN_OR_RETURN(const auto api, opencl::load_api(library));
  TS_ASSIGN_OR_RETURN(const auto found, opencl::find_devices(*api));
  std::vector<GpuProperties> all;
  for (const opencl::FoundDevice& device : found) all.push_back(device.properties);
  return all;
}

Result<std::unique_ptr<Gpu>> open_opencl(int index, const std::string& library) {
  auto shared = std::make_unique<Shared>();
  TS_ASSIGN_OR_RETURN(shared->api, opencl::load_api(library));
  TS_ASSIGN_OR_RETURN(const auto found, opencl::find_devices(*shared->api));
  if (index < 0 || index >= static_cast<int>(found.size())) {
    return Error{ErrorCode::kNotFound, to_string(GpuPlace{&opencl_platform, index}),
                 "no such device; OpenCL has " + std::to_string(found.size()) + ", numbered from 0"};
  }
  const opencl::FoundDevice& device = found[index];
  shared->device = device.device;
  shared->properties = device.properties;
  shared->offset_alignment = device.offset_alignment;
  int32_t code = 0;
  shared->context = {shared->api->create_context(nullptr, 1, &shared->device, nullptr, nullptr, &code),
                     shared->api->release_context};
  TS_RETURN_IF_ERROR(check(code, device.properties.name, "clCreateContext"));
  shared->queue = {
      shared->api->create_queue(shared->context.get(), shared->device, opencl::kQueueProfiling, &code),
      shared->api->release_queue};
  TS_RETURN_IF_ERROR(check(code, device.properties.name, "clCreateCommandQueue"));
  return std::unique_ptr<Gpu>(std::make_unique<OpenClGpu>(std::move(shared)));
}

constexpr std::string_view kCopyOpenCl =
    "kernel void copy(global const float4* from, global float4* to) {\n"
    "  to[get_global_id(0)] = from[get_global_id(0)];\n"
    "}\n";
constexpr std::string_view kCanaryOpenCl =
    "kernel void canary(global int* out) { out[get_global_id(0)] = 3 * (int)get_global_id(0) + 1; }\n";
constexpr std::string_view kOpenClArchs[] = {"opencl", "amdgcn"};

}  // namespace

const GpuPlatform opencl_platform = {.name = "opencl",
                                     .title = "OpenCL",
                                     .archs = kOpenClArchs,
                                     .list = list_opencl,
                                     .open = open_opencl,
                                     .copy_module = kCopyOpenCl,
                                     .canary_module = kCanaryOpenCl,
                                     .may_be_host = true};

}  // namespace tensorsmith::runtime

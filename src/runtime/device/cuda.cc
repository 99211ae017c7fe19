// GPUs through NVIDIA's driver. A module is a cubin; workspaces and offsets are addresses. The
// device's primary context is used, so that kernels can share memory with a program's own CUDA
// code.
#include <algorithm>
#include <utility>

#include "runtime/device/cuda_api.h"
#include "runtime/device/cuda_devices.h"
#include "runtime/device/cuda_sequence.h"
#include "runtime/device/driver_library.h"
#include "runtime/device/launch_checks.h"
#include "runtime/kernel_abi.h"

namespace tensorsmith::runtime {
namespace {

using cuda::CudaMemory;
using cuda::CudaModule;
using cuda::CudaShared;

// PTX for compute capability 5.0 and newer, which the driver compiles to machine code.
constexpr std::string_view kCopyPtx = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry copy(.param .u64 copy_from, .param .u64 copy_to)
{
  .reg .b32 %r<5>;
  .reg .f32 %f<5>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [copy_from];
  ld.param.u64 %rd2, [copy_to];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r4, %r2, %r3, %r1;
  mul.wide.u32 %rd5, %r4, 16;
  add.s64 %rd6, %rd3, %rd5;
  add.s64 %rd7, %rd4, %rd5;
  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd6];
  st.global.v4.f32 [%rd7], {%f1, %f2, %f3, %f4};
  ret;
}
)";
constexpr std::string_view kCanaryPtx = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry canary(.param .u64 canary_out)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [canary_out];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  mad.lo.s32 %r5, %r4, 3, 1;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r5;
  ret;
}
)";

class CudaGpu final : public Gpu {
 public:
  explicit CudaGpu(std::unique_ptr<CudaShared> shared) : shared_(std::move(shared)) {}

  const GpuProperties& properties() const override { return shared_->properties; }
  int64_t offset_alignment() const override { return TENSORSMITH_BUFFER_ALIGNMENT; }
  bool lost() const override { return shared_->lost; }

  Result<std::unique_ptr<GpuMemory>> allocate(int64_t bytes) override;
  Result<std::unique_ptr<GpuMemory>> borrow(void* handle, int64_t bytes) override;
  void* context() const override { return shared_->context; }
  Status copy_in(GpuSpan to, const void* from) override;
  Status copy_out(GpuSpan from, void* to) override;
  Status fill(GpuSpan span, unsigned char value) override;
  Result<std::unique_ptr<GpuModule>> load(std::span<const char> module) override;
  Result<std::unique_ptr<GpuSequence>> make_sequence() override { return cuda::make_sequence(*shared_); }
  Status synchronize() override {
    TS_RETURN_IF_ERROR(shared_->enter());
    return shared_->wait();
  }

 private:
  const cuda::Api& api() const { return *shared_->api; }

  std::unique_ptr<CudaShared> shared_;
};

Result<std::unique_ptr<GpuMemory>> CudaGpu::allocate(int64_t bytes) {
  TS_RETURN_IF_ERROR(shared_->enter());
  cuda::Address address = 0;
  const int code = api().allocate(&address, std::max<int64_t>(bytes, 1));
  if (code == cuda::kOutOfMemory) {
    return Error{ErrorCode::kResourceExhausted, shared_->properties.name,
                 "cannot allocate " + std::to_string(bytes) + " bytes; the device has " +
                     std::to_string(shared_->properties.memory_bytes)};
  }
  TS_RETURN_IF_ERROR(shared_->check(code, "cuMemAlloc"));
  return std::unique_ptr<GpuMemory>(std::make_unique<CudaMemory>(*shared_, address, bytes));
}

Result<std::unique_ptr<GpuMemory>> CudaGpu::borrow(void* handle, int64_t bytes) {
  const GpuProperties& p = shared_->properties;
  const auto refuse = [&](const std::string& reason) {
    return Error{ErrorCode::kInvalidArgument, p.name, reason};
  };
  TS_RETURN_IF_ERROR(shared_->enter());
  const auto address = reinterpret_cast<cuda::Address>(handle);
  int ordinal = -1;
  cuda::Address start = 0;
  size_t size = 0;
  const auto ask = [&](void* value, cuda::PointerAttribute attribute) {
    return api().get_pointer_attribute(value, attribute, address) == cuda::kSuccess;
  };
  if (!ask(&ordinal, cuda::kPointerDeviceOrdinal) || !ask(&start, cuda::kPointerRangeStart) ||
      !ask(&size, cuda::kPointerRangeBytes))
    return refuse("the address was not allocated by the driver");
  if (ordinal != p.place.index)
    return refuse("the memory is on device " + std::to_string(ordinal) + ", but the model is on device " +
                  std::to_string(p.place.index));
  const int64_t available = start + size - address;
  if (available < bytes)
    return refuse("the memory holds " + std::to_string(available) +
                  " bytes from the address on, but the tensor needs " + std::to_string(bytes));
  if (address % TENSORSMITH_BUFFER_ALIGNMENT != 0)
    return refuse("the address is not a multiple of " + std::to_string(TENSORSMITH_BUFFER_ALIGNMENT));
  return std::unique_ptr<GpuMemory>(
      std::make_unique<CudaMemory>(*shared_, address, bytes, CudaMemory::Owner::kCaller));
}

Status CudaGpu::copy_in(GpuSpan to, const void* from) {
  TS_RETURN_IF_ERROR(check_span(to, "copy to the device"));
  if (to.bytes == 0) return {};
  TS_RETURN_IF_ERROR(shared_->enter());
  TS_RETURN_IF_ERROR(shared_->check(api().copy_in(cuda::address_of(to), from, to.bytes, shared_->stream),
                                    "cuMemcpyHtoDAsync"));
  return shared_->wait();
}

Status CudaGpu::copy_out(GpuSpan from, void* to) {
  TS_RETURN_IF_ERROR(check_span(from, "copy from the device"));
  TS_RETURN_IF_ERROR(shared_->enter());
  if (from.bytes > 0) {
    TS_RETURN_IF_ERROR(shared_->check(api().copy_out(to, cuda::address_of(from), from.bytes, shared_->stream),
                                      "cuMemcpyDtoHAsync"));
  }
  return shared_->wait();
}

Status CudaGpu::fill(GpuSpan span, unsigned char value) {
  TS_RETURN_IF_ERROR(check_span(span, "fill"));
  if (span.bytes == 0) return {};
  TS_RETURN_IF_ERROR(shared_->enter());
  return shared_->check(api().fill(cuda::address_of(span), value, span.bytes, shared_->stream),
                        "cuMemsetD8Async");
}

Result<std::unique_ptr<GpuModule>> CudaGpu::load(std::span<const char> module) {
  TS_RETURN_IF_ERROR(shared_->enter());
  // The driver is not told the length: it reads a cubin's length from its header, and PTX up to a
  // zero byte.
  std::vector<char> image(module.begin(), module.end());
  image.push_back('\0');
  cuda::Module loaded = nullptr;
  const int code = api().load_module(&loaded, image.data());
  switch (code) {
    case cuda::kInvalidImage:
    case cuda::kNoBinaryForGpu:
    case cuda::kInvalidPtx:
    case cuda::kUnsupportedPtxVersion:
      return Error{
          ErrorCode::kCorrupt, "CUDA module",
          "the driver does not load it on " + shared_->properties.name + ": " + api().error_text(code)};
    default:
      TS_RETURN_IF_ERROR(shared_->check(code, "cuModuleLoadData"));
  }
  return std::unique_ptr<GpuModule>(std::make_unique<CudaModule>(*shared_, loaded));
}

Result<std::vector<GpuProperties>> list_cuda(const std::string& library) {
  TS_ASSIGN_OR_RETURN(const auto api, cuda::load_api(library));
  int count = 0;
  if (const int code = api->get_device_count(&count); code != cuda::kSuccess)
    return Error{ErrorCode::kIo, "CUDA", "cannot count the devices: " + api->error_text(code)};
  std::vector<GpuProperties> all;
  for (int i = 0; i < count; ++i) {
    TS_ASSIGN_OR_RETURN(GpuProperties properties, cuda::describe(*api, i));
    all.push_back(std::move(properties));
  }
  if (all.empty())
    return Error{ErrorCode::kNotFound, "CUDA", "there is no NVIDIA GPU that this process may use"};
  return all;
}

Result<std::unique_ptr<Gpu>> open_cuda(int index, const std::string& library) {
  auto shared = std::make_unique<CudaShared>();
  TS_ASSIGN_OR_RETURN(shared->api, cuda::load_api(library));
  TS_ASSIGN_OR_RETURN(shared->properties, cuda::describe(*shared->api, index));
  TS_RETURN_IF_ERROR(shared->check(shared->api->get_device(&shared->device, index), "cuDeviceGet"));
  TS_RETURN_IF_ERROR(shared->check(shared->api->retain_context(&shared->context, shared->device),
                                   "cuDevicePrimaryCtxRetain"));
  TS_RETURN_IF_ERROR(shared->enter());
  TS_RETURN_IF_ERROR(
      shared->check(shared->api->create_stream(&shared->stream, cuda::kStreamNonBlocking), "cuStreamCreate"));
  return std::unique_ptr<Gpu>(std::make_unique<CudaGpu>(std::move(shared)));
}

constexpr std::string_view kCudaArchs[] = {"nvptx"};

}  // namespace

const GpuPlatform cuda_platform = {.name = "cuda",
                                   .title = "CUDA",
                                   .archs = kCudaArchs,
                                   .list = list_cuda,
                                   .open = open_cuda,
                                   .copy_module = kCopyPtx,
                                   .canary_module = kCanaryPtx,
                                   .has_nsight_compute = true};

}  // namespace tensorsmith::runtime

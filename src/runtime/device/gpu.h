// A GPU, or any other device that runs modules of kernels, accessed through its driver. The
// driver's library is loaded when a device is requested: the same program works with and without
// it, and the build needs no driver headers.
//
//   TS_ASSIGN_OR_RETURN(const std::unique_ptr<Gpu> gpu, open_gpu({&opencl_platform, 0}));
//   TS_ASSIGN_OR_RETURN(const auto memory, gpu->allocate(bytes));
//   TS_RETURN_IF_ERROR(gpu->copy_in(memory->all(), data));
//   TS_ASSIGN_OR_RETURN(const auto module, gpu->load(bytes_of_module));
//   TS_ASSIGN_OR_RETURN(const auto sequence, gpu->make_sequence());
//   TS_RETURN_IF_ERROR(sequence->add(*module, launches, {memory->all()}, {}));
//   TS_RETURN_IF_ERROR(sequence->run());
//   TS_RETURN_IF_ERROR(gpu->copy_out(memory->all(), data));  // waits
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/device/gpu_platform.h"
#include "runtime/launch.h"

namespace tensorsmith::runtime {

// Properties of a device that its driver reports; 0 = not reported.
struct GpuProperties {
  GpuPlace place;
  std::string name;                          // "NVIDIA H100 80GB HBM3"
  std::string vendor;                        // only for OpenCL
  std::string driver;                        // version of the driver, as it reports it
  bool is_gpu = true;                        // OpenCL devices can also be processors and accelerators
  int compute_major = 0, compute_minor = 0;  // NVIDIA's compute capability, for example 9, 0
  int multiprocessors = 0;                   // compute units for OpenCL
  double clock_ghz = 0;                      // highest clock rate
  double memory_clock_ghz = 0;
  int memory_bus_bits = 0;
  double memory_bandwidth_gbs = 0;  // 10^9 bytes per second: two transfers per clock over the whole bus
  int64_t memory_bytes = 0;
  int64_t max_buffer_bytes = 0;  // largest single allocation
  int64_t l2_bytes = 0;
  int cacheline_bytes = 0;
  int warp_size = 0;
  int max_threads_per_block = 0, max_threads_per_core = 0, max_blocks_per_core = 0;
  std::array<int64_t, 3> max_block = {0, 0, 0}, max_grid = {0, 0, 0};
  int64_t shared_memory_per_block = 0;  // most bytes that a kernel can request
  int64_t shared_memory_per_core = 0;
  int64_t registers_per_block = 0, registers_per_core = 0;  // 32-bit registers
  bool has_f64 = false, has_f16 = false;
  bool has_tensor_maps = false;  // kernels may take a LaunchArgument::map
};

// Alignment of parts of a GPU's memory that suffices on every device, so that a planner that uses
// it never has to move a span.
inline constexpr int64_t kGpuOffsetAlignment = 512;

class GpuMemory;
// A part of a GPU's memory. If a kernel receives it, `offset` is a multiple of
// Gpu::offset_alignment().
struct GpuSpan {
  const GpuMemory* memory = nullptr;  // null: no memory, as for the workspace of launches that need none
  int64_t offset = 0;
  int64_t bytes = 0;
};

// Memory of the device, which is freed with this object. The Gpu must outlive it.
class GpuMemory {
 public:
  virtual ~GpuMemory() = default;
  virtual int64_t bytes() const = 0;
  GpuSpan all() const { return {this, 0, bytes()}; }
};

// The kernels of a module on the device, which are unloaded with this object.
class GpuModule {
 public:
  virtual ~GpuModule() = default;
};

// Launches with their arguments, which can be run any number of times. They run one after the
// other, and each sees the writes of the preceding ones. On CUDA, several launches run as one
// graph. Modules and memory that the sequence uses must outlive it.
class GpuSequence {
 public:
  virtual ~GpuSequence() = default;
  // Appends one call of a kernel. `buffers` are indexed by LaunchArgument::buffer; `workspace` has
  // at least the size that Gpu::workspace_bytes() returns for the launches. Must not be called
  // after the first run.
  //
  // Errors: kNotFound for a symbol that the module lacks; kInvalidArgument for arguments that do
  // not match the kernel or the buffers; kUnsupported for more threads or shared memory than the
  // device has.
  virtual Status add(const GpuModule& module, std::span<const Launch> launches,
                     std::span<const GpuSpan> buffers, GpuSpan workspace) = 0;
  // Starts all launches and returns. An error may stem from earlier work.
  virtual Status run() = 0;
  // Runs the sequence, waits, and returns the seconds from the beginning of the first launch to the
  // end of the last, measured with events on the device.
  virtual Result<double> time() = 0;
};

// One device and its only queue: operations are executed in the order of the calls. Not
// thread-safe.
class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual const GpuProperties& properties() const = 0;
  // Alignment of offsets of spans that kernels receive; a power of two, and at most
  // kGpuOffsetAlignment on all known devices.
  virtual int64_t offset_alignment() const = 0;

  // Returns kResourceExhausted if the device does not have that much memory. bytes >= 0.
  virtual Result<std::unique_ptr<GpuMemory>> allocate(int64_t bytes) = 0;
  // Wraps memory that the caller owns and keeps while the returned object is used. `handle` is an
  // address of the device (CUdeviceptr) or a cl_mem of context(). Returns kInvalidArgument if it
  // does not belong to this device's context, is smaller than `bytes`, or is not aligned for
  // kernels.
  virtual Result<std::unique_ptr<GpuMemory>> borrow(void* handle, int64_t bytes) = 0;
  // The driver's context: CUcontext (the device's primary context) or cl_context. Lives as long as
  // this object.
  virtual void* context() const = 0;
  // Copy span.bytes bytes. copy_out waits for all work that was started before; copy_in returns
  // when `from` may be modified.
  virtual Status copy_in(GpuSpan to, const void* from) = 0;
  virtual Status copy_out(GpuSpan from, void* to) = 0;
  virtual Status fill(GpuSpan span, unsigned char value) = 0;

  // Loads a module: a cubin (or PTX) for CUDA, source text for OpenCL. Returns kCorrupt, with the
  // driver's message in one line, if the driver rejects it.
  virtual Result<std::unique_ptr<GpuModule>> load(std::span<const char> module) = 0;
  virtual Result<std::unique_ptr<GpuSequence>> make_sequence() = 0;
  // Waits for all work. If a kernel caused an error, returns kMismatch, and lost() is true
  // afterwards.
  virtual Status synchronize() = 0;
  // Returns whether a kernel has broken the device's context (by an illegal address, for example).
  // Nothing can run on the context any more, and only a new process gets a new one.
  virtual bool lost() const = 0;

  // Returns the size of a workspace for launches of kernels that need `bytes`
  // (CompiledKernel::shared_workspace_bytes). It is larger if an offset is not aligned for the
  // device: see workspace_scale().
  int64_t workspace_bytes(std::span<const Launch> launches, int64_t bytes) const {
    return bytes * workspace_scale(launches, offset_alignment());
  }

  // OpenCL has no addresses: a kernel receives an offset as a sub-buffer, which must begin at a
  // multiple of the device's alignment (128 or 512 bytes). If launches were planned with less, all
  // their offsets are multiplied by the returned factor. Disjoint parts stay disjoint, as long as
  // each value is accessed only through its own argument. Returns 1 if all offsets are aligned.
  static int64_t workspace_scale(std::span<const Launch> launches, int64_t alignment);
};

// Lists the devices of a platform, GPUs first. `library` and the errors are those of GpuPlatform::list.
inline Result<std::vector<GpuProperties>> list_gpus(const GpuPlatform& platform,
                                                    const std::string& library = "") {
  return platform.list(library);
}
// Opens a device. `library` and the errors are those of GpuPlatform::open.
inline Result<std::unique_ptr<Gpu>> open_gpu(const GpuPlace& place, const std::string& library = "") {
  return place.platform->open(place.index, library);
}

}  // namespace tensorsmith::runtime

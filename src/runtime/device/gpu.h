// A GPU, or anything else that runs modules of kernels, behind its driver. The driver's library is loaded when a device
// is asked for: one program works with and without it, and no driver's header is needed to build.
//
//   TS_ASSIGN_OR_RETURN(const std::unique_ptr<Gpu> gpu, open_gpu(GpuApi::kOpenCl, 0));
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
#include "runtime/launch.h"

namespace tensorsmith::runtime {

enum class GpuApi : uint8_t { kCuda, kOpenCl };
std::string_view to_string(GpuApi api);  // "cuda", "opencl"

// What the driver says of a device; 0 = it does not say.
struct GpuProperties {
  GpuApi api = GpuApi::kCuda;
  int index = 0;                             // among the devices of this interface
  std::string name;                          // "NVIDIA H100 80GB HBM3"
  std::string vendor;                        // OpenCL
  std::string driver;                        // its version, as it writes it
  bool is_gpu = true;                        // OpenCL also has processors and accelerators
  int compute_major = 0, compute_minor = 0;  // NVIDIA's compute capability: 9, 0
  int multiprocessors = 0;                   // OpenCL: compute units
  double clock_ghz = 0;                      // the highest
  double memory_clock_ghz = 0;
  int memory_bus_bits = 0;
  double memory_bandwidth_gbs = 0;  // 10^9 bytes a second: two transfers a clock over the whole bus
  int64_t memory_bytes = 0;
  int64_t max_buffer_bytes = 0;  // of one allocation
  int64_t l2_bytes = 0;
  int cacheline_bytes = 0;
  int warp_size = 0;
  int max_threads_per_block = 0, max_threads_per_core = 0, max_blocks_per_core = 0;
  std::array<int64_t, 3> max_block = {0, 0, 0}, max_grid = {0, 0, 0};
  int64_t shared_memory_per_block = 0;  // bytes, the most that a kernel can ask for
  int64_t shared_memory_per_core = 0;
  int64_t registers_per_block = 0, registers_per_core = 0;  // of 32 bits
  bool has_f64 = false, has_f16 = false;
};

// Where a part of a GPU's memory may begin, on every device: a planner that keeps to it needs no GpuSpan moved.
inline constexpr int64_t kGpuOffsetAlignment = 512;

class GpuMemory;
// A part of a GPU's memory. offset: a multiple of Gpu::offset_alignment() where a kernel gets it.
struct GpuSpan {
  const GpuMemory* memory = nullptr;  // null: nothing, as the workspace of launches that need none
  int64_t offset = 0;
  int64_t bytes = 0;
};

// Memory of the device, freed with this object, which lives no longer than its Gpu.
class GpuMemory {
 public:
  virtual ~GpuMemory() = default;
  virtual int64_t bytes() const = 0;
  GpuSpan all() const { return {this, 0, bytes()}; }
};

// A module's kernels on the device, unloaded with this object.
class GpuModule {
 public:
  virtual ~GpuModule() = default;
};

// Launches with their arguments, ready to run as often as one likes, one after the other; each sees what those before
// it wrote. CUDA runs several launches as one graph. Modules and memory that it names outlive it.
class GpuSequence {
 public:
  virtual ~GpuSequence() = default;
  // Appends one call of a kernel. buffers: by LaunchArgument::buffer. workspace: at least Gpu::workspace_bytes() of the
  // launches. Not after the first run.
  // kNotFound: a symbol that the module lacks; kInvalidArgument: arguments that the kernel or the buffers do not have;
  // kUnsupported: more threads or shared memory than the device gives.
  virtual Status add(const GpuModule& module, std::span<const Launch> launches,
                     std::span<const GpuSpan> buffers, GpuSpan workspace) = 0;
  // Starts all launches and returns. Errors may belong to what ran before.
  virtual Status run() = 0;
  // Runs it and waits: seconds from the beginning of the first launch to the end of the last, by the device's events.
  virtual Result<double> time() = 0;
};

// One device and its one queue: everything happens in the order of the calls. For one thread at a time.
class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual const GpuProperties& properties() const = 0;
  // Of offsets of spans that kernels get; a power of two of at most kGpuOffsetAlignment on the devices that are known.
  virtual int64_t offset_alignment() const = 0;

  // kResourceExhausted: the device has not so much. bytes >= 0.
  virtual Result<std::unique_ptr<GpuMemory>> allocate(int64_t bytes) = 0;
  // Memory that somebody else owns, who keeps it as long as what is returned is used. handle: an address of the device
  // (CUdeviceptr) or a cl_mem of context(). kInvalidArgument: it is not of this device's context, is smaller than
  // `bytes`, or begins where kernels do not take a buffer.
  virtual Result<std::unique_ptr<GpuMemory>> borrow(void* handle, int64_t bytes) = 0;
  // The driver's: CUcontext (the device's primary context) or cl_context. Lives as long as this object.
  virtual void* context() const = 0;
  // span.bytes bytes. copy_out waits for all that was started before; copy_in returns when `from` may change.
  virtual Status copy_in(GpuSpan to, const void* from) = 0;
  virtual Status copy_out(GpuSpan from, void* to) = 0;
  virtual Status fill(GpuSpan span, unsigned char value) = 0;

  // CUDA: a cubin (or PTX); OpenCL: source text. kCorrupt: the driver refuses it, with what it says in one line.
  virtual Result<std::unique_ptr<GpuModule>> load(std::span<const char> module) = 0;
  virtual Result<std::unique_ptr<GpuSequence>> make_sequence() = 0;
  // Waits for everything. An error that a kernel caused is kMismatch, and then lost() is true.
  virtual Status synchronize() = 0;
  // A kernel has broken the device's context (an illegal address, say): nothing runs on it any more, and only a new
  // process gets a new one.
  virtual bool lost() const = 0;

  // Bytes of a workspace for the launches of kernels that need `bytes` (CompiledKernel::shared_workspace_bytes). More
  // where an offset does not suit the device: see workspace_scale().
  int64_t workspace_bytes(std::span<const Launch> launches, int64_t bytes) const {
    return bytes * workspace_scale(launches, offset_alignment());
  }

  // OpenCL has no addresses: a kernel gets an offset as a sub-buffer, which may begin at multiples of the device's
  // alignment only (128 bytes, 512). Launches that were planned with less get all their offsets multiplied by this
  // number: what was disjoint stays so, as long as each value is reached by its own argument only. 1 where all fit.
  static int64_t workspace_scale(std::span<const Launch> launches, int64_t alignment);
};

// The devices of an interface, GPUs first. library: the driver's file; empty: where the loader finds it
// (libcuda.so.1, libOpenCL.so.1). kNotFound: no such library or no device, with what to install.
Result<std::vector<GpuProperties>> list_gpus(GpuApi api, const std::string& library = "");
Result<std::unique_ptr<Gpu>> open_gpu(GpuApi api, int index, const std::string& library = "");

}  // namespace tensorsmith::runtime

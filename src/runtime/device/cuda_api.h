// The functions of NVIDIA's driver that are used, declared from its documentation (CUDA 11.4 and
// newer).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace tensorsmith::runtime::cuda {

struct ContextTag;
struct ModuleTag;
struct FunctionTag;
struct StreamTag;
struct EventTag;
struct GraphTag;
struct GraphExecTag;
using Context = ContextTag*;
using Module = ModuleTag*;
using Function = FunctionTag*;
using Stream = StreamTag*;
using Event = EventTag*;
using Graph = GraphTag*;
using GraphExec = GraphExecTag*;
using Device = int;
using Address = unsigned long long;  // in the device's memory

// Result codes (CUresult) that are handled separately.
enum Code : int {
  kSuccess = 0,
  kOutOfMemory = 2,
  kStubLibrary = 34,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kNotFound = 500,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719
};
// Returns whether the context is unusable after this code.
bool breaks_context(int code);

enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxBlockX = 2,
  kMaxBlockY = 3,
  kMaxBlockZ = 4,
  kMaxGridX = 5,
  kMaxGridY = 6,
  kMaxGridZ = 7,
  kWarpSize = 10,
  kRegistersPerBlock = 12,
  kClockKhz = 13,
  kMultiprocessors = 16,
  kMemoryClockKhz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kSharedPerMultiprocessor = 81,
  kRegistersPerMultiprocessor = 82,
  kSharedPerBlockOptin = 97,
  kMaxBlocksPerMultiprocessor = 106
};
enum FunctionAttribute : int {
  kFunctionMaxThreads = 0,
  kFunctionSharedBytes = 1,
  kFunctionMaxDynamicShared = 8
};
enum PointerAttribute : int { kPointerDeviceOrdinal = 9, kPointerRangeStart = 11, kPointerRangeBytes = 12 };
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
// Capture mode that forbids no calls: the driver may load a kernel lazily at its first launch.
inline constexpr int kCaptureRelaxed = 2;

struct Api {
  int (*init)(unsigned);
  int (*get_driver_version)(int*);
  int (*get_error_name)(int, const char**);
  int (*get_error_string)(int, const char**);
  int (*get_device_count)(int*);
  int (*get_device)(Device*, int);
  int (*get_device_name)(char*, int, Device);
  int (*get_device_attribute)(int*, int attribute, Device);
  int (*get_total_memory)(size_t*, Device);
  int (*retain_context)(Context*, Device);
  int (*release_context)(Device);
  int (*set_context)(Context);
  int (*create_stream)(Stream*, unsigned);
  int (*destroy_stream)(Stream);
  int (*synchronize_stream)(Stream);
  int (*allocate)(Address*, size_t);
  int (*free)(Address);
  int (*copy_in)(Address, const void*, size_t, Stream);
  int (*copy_out)(void*, Address, size_t, Stream);
  int (*fill)(Address, unsigned char, size_t, Stream);
  int (*load_module)(Module*, const void*);
  int (*unload_module)(Module);
  int (*get_function)(Function*, Module, const char*);
  int (*get_function_attribute)(int*, int attribute, Function);
  int (*set_function_attribute)(Function, int attribute, int);
  int (*launch)(Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream, void** arguments,
                void** extra);
  int (*create_event)(Event*, unsigned);
  int (*destroy_event)(Event);
  int (*record_event)(Event, Stream);
  int (*synchronize_event)(Event);
  int (*get_elapsed_ms)(float*, Event start, Event end);
  int (*begin_capture)(Stream, int mode);
  int (*end_capture)(Stream, Graph*);
  int (*instantiate)(GraphExec*, Graph, unsigned long long flags);
  int (*launch_graph)(GraphExec, Stream);
  int (*destroy_graph)(Graph);
  int (*destroy_graph_exec)(GraphExec);
  int (*get_pointer_attribute)(void*, int attribute, Address);
  // Null if the driver is older than CUDA 12.
  int (*encode_tiled)(void* map, int type, uint32_t rank, Address, const uint64_t* extents,
                      const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave,
                      int swizzle, int promotion, int fill);

  // Returns, for example, "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
  std::string error_text(int code) const;
};

// Loads and initializes the driver. `library` is a file, or empty for libcuda.so.1. Returns
// kNotFound if there is no driver or no device.
Result<std::shared_ptr<const Api>> load_api(const std::string& library);

}  // namespace tensorsmith::runtime::cuda

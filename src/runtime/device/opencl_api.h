// The functions of OpenCL's C interface that are used, declared from the Khronos specification
// (OpenCL 1.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace tensorsmith::runtime::opencl {

struct PlatformTag;
struct DeviceTag;
struct ContextTag;
struct QueueTag;
struct MemoryTag;
struct ProgramTag;
struct KernelTag;
struct EventTag;
using Platform = PlatformTag*;
using Device = DeviceTag*;
using Context = ContextTag*;
using Queue = QueueTag*;
using Memory = MemoryTag*;
using Program = ProgramTag*;
using Kernel = KernelTag*;
using Event = EventTag*;

// Error codes that are handled separately.
inline constexpr int32_t kSuccess = 0, kDeviceNotFound = -1, kMemoryAllocationFailure = -4,
                         kOutOfResources = -5, kOutOfHostMemory = -6, kBuildProgramFailure = -11,
                         kInvalidKernelName = -46, kInvalidWorkGroupSize = -54, kInvalidWorkItemSize = -55,
                         kInvalidBufferSize = -61, kPlatformNotFound = -1001;
std::string error_text(int32_t code);  // "CL_OUT_OF_RESOURCES", "error -9999"

inline constexpr uint64_t kTypeCpu = 2, kTypeGpu = 4, kTypeAll = 0xFFFFFFFF;
inline constexpr uint64_t kQueueProfiling = 2;
inline constexpr uint64_t kMemoryReadWrite = 1;
inline constexpr uint32_t kCreateRegion = 0x1220;
inline constexpr uint32_t kMemoryType = 0x1100, kMemorySize = 0x1102, kMemoryContext = 0x1106;
inline constexpr uint32_t kMemoryIsBuffer = 0x10F0;
struct Region {
  size_t origin, size;
};

enum DeviceInfo : uint32_t {
  kDeviceType = 0x1000,
  kMaxComputeUnits = 0x1002,
  kMaxWorkGroupSize = 0x1004,
  kMaxWorkItemSizes = 0x1005,
  kMaxClockMhz = 0x100C,
  kMaxAllocation = 0x1010,
  kMemoryBaseAlignBits = 0x1019,
  kCachelineBytes = 0x101D,
  kCacheBytes = 0x101E,
  kMemoryBytes = 0x101F,
  kLocalMemoryBytes = 0x1023,
  kDeviceAvailable = 0x1027,
  kCompilerAvailable = 0x1028,
  kDeviceName = 0x102B,
  kDeviceVendor = 0x102C,
  kDriverVersion = 0x102D,
  kDeviceExtensions = 0x1030,
  // Vendor extensions: cl_nv_device_attribute_query, cl_amd_device_attribute_query.
  kNvComputeMajor = 0x4000,
  kNvComputeMinor = 0x4001,
  kNvRegistersPerBlock = 0x4002,
  kNvWarpSize = 0x4003,
  kAmdWavefrontWidth = 0x4043
};
enum : uint32_t {
  kBuildLog = 0x1183,
  kKernelArguments = 0x1191,
  kKernelWorkGroupSize = 0x11B0,
  kKernelLocalBytes = 0x11B2,
  kProfilingStart = 0x1282,
  kProfilingEnd = 0x1283
};

struct Api {
  int32_t (*get_platforms)(uint32_t, Platform*, uint32_t*);
  int32_t (*get_devices)(Platform, uint64_t type, uint32_t, Device*, uint32_t*);
  int32_t (*get_device_info)(Device, uint32_t, size_t, void*, size_t*);
  Context (*create_context)(const intptr_t* properties, uint32_t, const Device*,
                            void (*)(const char*, const void*, size_t, void*), void*, int32_t*);
  int32_t (*release_context)(Context);
  Queue (*create_queue)(Context, Device, uint64_t properties, int32_t*);
  int32_t (*release_queue)(Queue);
  Memory (*create_buffer)(Context, uint64_t flags, size_t, void*, int32_t*);
  Memory (*create_sub_buffer)(Memory, uint64_t flags, uint32_t type, const void*, int32_t*);
  int32_t (*get_memory_info)(Memory, uint32_t, size_t, void*, size_t*);
  int32_t (*retain_memory)(Memory);
  int32_t (*release_memory)(Memory);
  Program (*create_program)(Context, uint32_t, const char**, const size_t*, int32_t*);
  int32_t (*build_program)(Program, uint32_t, const Device*, const char* options, void (*)(Program, void*),
                           void*);
  int32_t (*get_build_info)(Program, Device, uint32_t, size_t, void*, size_t*);
  int32_t (*release_program)(Program);
  Kernel (*create_kernel)(Program, const char*, int32_t*);
  int32_t (*release_kernel)(Kernel);
  int32_t (*set_argument)(Kernel, uint32_t, size_t, const void*);
  int32_t (*get_kernel_info)(Kernel, uint32_t, size_t, void*, size_t*);
  int32_t (*get_work_group_info)(Kernel, Device, uint32_t, size_t, void*, size_t*);
  int32_t (*enqueue_kernel)(Queue, Kernel, uint32_t dims, const size_t* offset, const size_t* global,
                            const size_t* local, uint32_t, const Event*, Event*);
  int32_t (*enqueue_read)(Queue, Memory, uint32_t blocking, size_t offset, size_t, void*, uint32_t,
                          const Event*, Event*);
  int32_t (*enqueue_write)(Queue, Memory, uint32_t blocking, size_t offset, size_t, const void*, uint32_t,
                           const Event*, Event*);
  int32_t (*enqueue_fill)(Queue, Memory, const void* pattern, size_t pattern_bytes, size_t offset, size_t,
                          uint32_t, const Event*, Event*);
  int32_t (*flush)(Queue);
  int32_t (*finish)(Queue);
  int32_t (*get_event_profile)(Event, uint32_t, size_t, void*, size_t*);
  int32_t (*release_event)(Event);
};

// `library` is a file, or empty for libOpenCL.so.1.
Result<std::shared_ptr<const Api>> load_api(const std::string& library);

}  // namespace tensorsmith::runtime::opencl

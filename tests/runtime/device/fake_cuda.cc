#include "runtime/device/fake_cuda.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kInvalidContext = 201, kInvalidImage = 200,
              kNotFound = 500, kIllegalAddress = 700;
constexpr size_t kMemoryBytes = size_t{80} << 30;
constexpr int kOptinShared = 232448, kDefaultShared = 48 << 10, kDeclaredShared = 1024;

struct Function {
  std::string name;
  int dynamic_shared = kDefaultShared - kDeclaredShared;
};
struct Module {
  std::map<std::string, Function> functions;
};
struct Launch {
  Function* function;
  int64_t threads;
  std::vector<uint64_t> arguments;
};
struct Stream {
  bool capturing = false;
  std::vector<Launch> captured;
};
using Graph = std::vector<Launch>;

std::string log_text, taken, failing;
int failing_code = 0, alive = 0;
int broken = 0;  // the error code of the kernel that broke the context, else 0
thread_local void* current = nullptr;
int the_context = 0;
std::map<uint64_t, size_t> memory;  // size in bytes by address

void note(const std::string& line) { log_text += line + "\n"; }

// Returns the error code that the test ordered for this call, else 0.
int told(const char* call) {
  note(call);
  if (failing != call) return 0;
  failing.clear();
  return failing_code;
}
// Like told(), for calls that need a context.
int begin(const char* call) {
  const int code = told(call);
  if (code) return code;
  if (broken) return broken;
  return current == &the_context ? 0 : kInvalidContext;
}
#define BEGIN(call) \
  if (const int code = begin(call); code) return code

// Runs a kernel: "add": c = a + b; "more": a += 1; "add_shared": like add; "illegal" breaks the
// context; "hangs" does not end; "canary": a = 3 i + 1, or something else with FAKE_CUDA_CANARY in
// the environment.
void compute(const Launch& launch) {
  const std::string& name = launch.function->name;
  if (name == "illegal") broken = kIllegalAddress;
  if (name == "hangs") std::this_thread::sleep_for(std::chrono::hours(1));
  if (name == "canary") {
    const int wrong = std::getenv("FAKE_CUDA_CANARY") ? 7 : 0;
    for (int i = 0; i < launch.threads; ++i)
      reinterpret_cast<int*>(launch.arguments.at(0))[i] = 3 * i + 1 + wrong;
  }
  if (name != "more" && name.rfind("add", 0) != 0) return;
  const auto at = [&](size_t i) { return reinterpret_cast<float*>(launch.arguments.at(i)); };
  for (int64_t i = 0; i < launch.threads; ++i) {
    if (launch.function->name == "more") {
      at(0)[i] += 1;
    } else {
      at(2)[i] = at(0)[i] + at(1)[i];
    }
  }
}

// Attributes of an H100 (SXM), by the numbers of CUdevice_attribute.
const std::map<int, int> kAttributes = {
    {1, 1024},  {2, 1024},   {3, 1024},     {4, 64},      {5, 2147483647}, {6, 65535},         {7, 65535},
    {10, 32},   {12, 65536}, {13, 1980000}, {16, 132},    {36, 2619000},   {37, 5120},         {38, 52428800},
    {39, 2048}, {75, 9},     {76, 0},       {81, 233472}, {82, 65536},     {97, kOptinShared}, {106, 32}};

}  // namespace

extern "C" {

const char* fake_cuda_take_log() {
  taken = std::move(log_text);
  log_text.clear();
  return taken.c_str();
}
void fake_cuda_fail(const char* call, int code) {
  failing = call ? call : "";
  failing_code = code;
}
int fake_cuda_alive() { return alive; }
unsigned long long fake_cuda_first_address() { return memory.begin()->first; }

int cuInit(unsigned flags) {
  const int code = told("cuInit");
  return code ? code : flags == 0 ? 0 : kInvalidValue;
}
int cuDriverGetVersion(int* version) {
  *version = 12080;
  return 0;
}
int cuGetErrorName(int code, const char** name) {
  *name = code == 700             ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == kInvalidImage ? "CUDA_ERROR_INVALID_IMAGE"
                                  : "CUDA_ERROR";
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "what it means";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 2;
  return told("cuDeviceGetCount");
}
int cuDeviceGet(int* device, int ordinal) {
  *device = 10 + ordinal;  // a handle that differs from the number
  return ordinal < 0 || ordinal > 1 ? 101 : 0;
}
int cuDeviceGetName(char* name, int length, int device) {
  const std::string text = device == 10 ? "NVIDIA H100 80GB HBM3" : "NVIDIA Other";
  std::strncpy(name, text.c_str(), static_cast<size_t>(length));
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const auto found = kAttributes.find(attribute);
  if (found == kAttributes.end()) return kInvalidValue;
  *value = found->second;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = kMemoryBytes;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  note("cuDevicePrimaryCtxRetain " + std::to_string(device));
  ++alive;
  *context = &the_context;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  --alive;
  return 0;
}
int cuCtxSetCurrent(void* context) {
  current = context;
  return 0;
}
int cuStreamCreate(Stream** stream, unsigned flags) {
  BEGIN("cuStreamCreate");
  if (flags != 1) return kInvalidValue;
  ++alive;
  *stream = new Stream;
  return 0;
}
int cuStreamDestroy_v2(Stream* stream) {
  BEGIN("cuStreamDestroy");
  --alive;
  delete stream;
  return 0;
}
int cuStreamSynchronize(Stream* stream) {
  BEGIN("cuStreamSynchronize");
  return stream->capturing ? kInvalidValue : 0;
}
int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  BEGIN("cuMemAlloc");
  if (bytes == 0) return kInvalidValue;
  if (bytes > kMemoryBytes) return kOutOfMemory;
  ++alive;
  *address = reinterpret_cast<unsigned long long>(new (std::align_val_t{512}) char[bytes]);
  memory[*address] = bytes;
  return 0;
}
int cuMemFree_v2(unsigned long long address) {
  BEGIN("cuMemFree");
  if (memory.erase(address) == 0) return kInvalidValue;
  --alive;
  ::operator delete[](reinterpret_cast<char*>(address), std::align_val_t{512});
  return 0;
}
int cuPointerGetAttribute(void* value, int attribute, unsigned long long address) {
  BEGIN("cuPointerGetAttribute");
  auto found = memory.upper_bound(address);
  if (found == memory.begin()) return kInvalidValue;
  --found;
  if (address >= found->first + found->second) return kInvalidValue;
  switch (attribute) {
    case 9:  // number of the device
      *static_cast<int*>(value) = 0;
      return 0;
    case 11:
      *static_cast<unsigned long long*>(value) = found->first;
      return 0;
    case 12:
      *static_cast<size_t*>(value) = found->second;
      return 0;
    default:
      return kInvalidValue;
  }
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, Stream*) {
  BEGIN("cuMemcpyHtoDAsync");
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, Stream*) {
  BEGIN("cuMemcpyDtoHAsync");
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}
int cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, Stream*) {
  BEGIN("cuMemsetD8Async");
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return 0;
}
// A module is text: "fake" and the names of its kernels.
int cuModuleLoadData(Module** module, const void* image) {
  BEGIN("cuModuleLoadData");
  std::string text = static_cast<const char*>(image);
  // PTX of the kernels that the fake knows.
  if (text.find(".visible .entry hold()") != std::string::npos) text = "fake hold";
  if (text.find(".visible .entry canary(.param .u64 canary_out)") != std::string::npos) text = "fake canary";
  if (text.rfind("fake ", 0) != 0) return kInvalidImage;
  text += " ";
  *module = new Module;
  ++alive;
  for (size_t begins = 5, ends; (ends = text.find(' ', begins)) != std::string::npos; begins = ends + 1) {
    const std::string name = text.substr(begins, ends - begins);
    (*module)->functions[name].name = name;
  }
  return 0;
}
int cuModuleUnload(Module* module) {
  BEGIN("cuModuleUnload");
  --alive;
  delete module;
  return 0;
}
int cuModuleGetFunction(Function** function, Module* module, const char* name) {
  BEGIN("cuModuleGetFunction");
  const auto found = module->functions.find(name);
  if (found == module->functions.end()) return kNotFound;
  *function = &found->second;
  return 0;
}
int cuFuncGetAttribute(int* value, int attribute, Function* function) {
  const bool shared = function->name == "add_shared";
  if (attribute == 0) *value = function->name == "more" ? 512 : 1024;
  if (attribute == 1) *value = shared ? kDeclaredShared : 0;
  if (attribute == 8) *value = function->dynamic_shared;
  return 0;
}
int cuFuncSetAttribute(Function* function, int attribute, int value) {
  note("cuFuncSetAttribute " + function->name + " " + std::to_string(attribute) + " " +
       std::to_string(value));
  if (attribute != 8 || value > kOptinShared - kDeclaredShared) return kInvalidValue;
  function->dynamic_shared = value;
  return 0;
}
int cuLaunchKernel(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, Stream* stream, void** parameters,
                   void** extra) {
  std::string line = "cuLaunchKernel " + function->name + " grid";
  for (const unsigned extent : {grid_x, grid_y, grid_z}) line += " " + std::to_string(extent);
  line += " block";
  for (const unsigned extent : {block_x, block_y, block_z}) line += " " + std::to_string(extent);
  note(line + " shared " + std::to_string(shared));
  BEGIN("cuLaunchKernel");
  if (function->name == "hold") return 0;
  if (extra || !parameters || static_cast<int>(shared) > function->dynamic_shared) return kInvalidValue;
  Launch launch{function, int64_t{grid_x} * grid_y * grid_z * block_x * block_y * block_z, {}};
  const size_t arguments = function->name == "more" || function->name == "canary" ? 1 : 3;
  for (size_t i = 0; i < arguments; ++i) launch.arguments.push_back(*static_cast<uint64_t*>(parameters[i]));
  if (stream->capturing) {
    stream->captured.push_back(launch);
  } else {
    compute(launch);
  }
  return 0;
}
// The fake kernels read only the address that a tensor map describes.
int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, uint64_t address, const uint64_t* extents,
                           const uint64_t* strides, const unsigned* box, const unsigned* steps,
                           int interleave, int swizzle, int promotion, int fill) {
  std::string line = "cuTensorMapEncodeTiled type " + std::to_string(type) + " extents";
  for (unsigned d = 0; d < rank; ++d) line += " " + std::to_string(extents[d]);
  line += " strides";
  for (unsigned d = 0; d + 1 < rank; ++d) line += " " + std::to_string(strides[d]);
  line += " box";
  for (unsigned d = 0; d < rank; ++d) line += " " + std::to_string(box[d]) + "/" + std::to_string(steps[d]);
  note(line + " interleave " + std::to_string(interleave) + " swizzle " + std::to_string(swizzle) +
       " promotion " + std::to_string(promotion) + " fill " + std::to_string(fill));
  BEGIN("cuTensorMapEncodeTiled");
  if (reinterpret_cast<uintptr_t>(map) % 64 != 0 || address % 16 != 0) return kInvalidValue;
  std::memset(map, 0, 128);
  std::memcpy(map, &address, sizeof address);
  return 0;
}
int cuEventCreate(int** event, unsigned flags) {
  BEGIN("cuEventCreate");
  ++alive;
  *event = new int(0);
  return flags == 0 ? 0 : kInvalidValue;
}
int cuEventDestroy_v2(int* event) {
  BEGIN("cuEventDestroy");
  --alive;
  delete event;
  return 0;
}
int cuEventRecord(int* event, Stream*) {
  BEGIN("cuEventRecord");
  static int recorded = 0;
  *event = ++recorded;
  return 0;
}
int cuEventSynchronize(int*) {
  BEGIN("cuEventSynchronize");
  return 0;
}
int cuEventElapsedTime(float* milliseconds, const int* start, const int* end) {
  *milliseconds = 2.5f * static_cast<float>(*end - *start);  // negative if the events are in the wrong order
  return 0;
}
int cuStreamBeginCapture_v2(Stream* stream, int mode) {
  BEGIN("cuStreamBeginCapture");
  if (mode != 2) return kInvalidValue;
  stream->capturing = true;
  return 0;
}
int cuStreamEndCapture(Stream* stream, Graph** graph) {
  BEGIN("cuStreamEndCapture");
  stream->capturing = false;
  *graph = new Graph(std::move(stream->captured));
  stream->captured.clear();
  ++alive;
  return 0;
}
#ifndef FAKE_OLD_DRIVER
int cuGraphInstantiateWithFlags(Graph** executable, Graph* graph, unsigned long long flags) {
  BEGIN("cuGraphInstantiateWithFlags");
  if (flags != 0) return kInvalidValue;
  *executable = new Graph(*graph);
  ++alive;
  return 0;
}
#endif
int cuGraphLaunch(Graph* graph, Stream*) {
  BEGIN("cuGraphLaunch");
  for (const Launch& launch : *graph) compute(launch);
  return 0;
}
int cuGraphDestroy(Graph* graph) {
  --alive;
  delete graph;
  return 0;
}
int cuGraphExecDestroy(Graph* graph) {
  --alive;
  delete graph;
  return 0;
}

}  // extern "C"

#include "runtime/device/cuda_api.h"

#include "runtime/device/driver_library.h"

namespace tensorsmith::runtime::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr const char* kRemedy = "install NVIDIA's driver (Debian: nvidia-driver), version 470 or newer";

Status initialize(const Api& api, const std::string& file) {
  const int code = api.init(0);
  if (code == kSuccess) return {};
  const bool none = code == kNoDevice || code == kStubLibrary;
  return Error{none ? ErrorCode::kNotFound : ErrorCode::kIo, file,
               (none ? "there is no NVIDIA GPU that this process may use: " : "the driver does not start: ") +
                   api.error_text(code)};
}

}  // namespace

bool breaks_context(int code) {
  switch (code) {
    case kEccUncorrectable:
    case kIllegalAddress:
    case kLaunchTimeout:
    case kAssert:
    case kHardwareStackError:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidPc:
    case kLaunchFailed:
      return true;
    default:
      return false;
  }
}

std::string Api::error_text(int code) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (get_error_name(code, &name) != kSuccess || !name) return "CUDA error " + std::to_string(code);
  if (get_error_string(code, &text) != kSuccess || !text) return name;
  return std::string(name) + " (" + text + ")";
}

// The suffixes are the function versions that the headers of CUDA 11.4 and newer select.
Result<std::shared_ptr<const Api>> load_api(const std::string& library) {
  const std::string file = library.empty() ? kLibrary : library;
  TS_ASSIGN_OR_RETURN(DriverLibrary driver, DriverLibrary::open(file, kRemedy));
  const auto api = std::make_shared<Api>();
  driver.find("cuInit", api->init);
  driver.find("cuDriverGetVersion", api->get_driver_version);
  driver.find("cuGetErrorName", api->get_error_name);
  driver.find("cuGetErrorString", api->get_error_string);
  driver.find("cuDeviceGetCount", api->get_device_count);
  driver.find("cuDeviceGet", api->get_device);
  driver.find("cuDeviceGetName", api->get_device_name);
  driver.find("cuDeviceGetAttribute", api->get_device_attribute);
  driver.find("cuDeviceTotalMem_v2", api->get_total_memory);
  driver.find("cuDevicePrimaryCtxRetain", api->retain_context);
  driver.find("cuDevicePrimaryCtxRelease_v2", api->release_context);
  driver.find("cuCtxSetCurrent", api->set_context);
  driver.find("cuStreamCreate", api->create_stream);
  driver.find("cuStreamDestroy_v2", api->destroy_stream);
  driver.find("cuStreamSynchronize", api->synchronize_stream);
  driver.find("cuMemAlloc_v2", api->allocate);
  driver.find("cuMemFree_v2", api->free);
  driver.find("cuMemcpyHtoDAsync_v2", api->copy_in);
  driver.find("cuMemcpyDtoHAsync_v2", api->copy_out);
  driver.find("cuMemsetD8Async", api->fill);
  driver.find("cuModuleLoadData", api->load_module);
  driver.find("cuModuleUnload", api->unload_module);
  driver.find("cuModuleGetFunction", api->get_function);
  driver.find("cuFuncGetAttribute", api->get_function_attribute);
  driver.find("cuFuncSetAttribute", api->set_function_attribute);
  driver.find("cuLaunchKernel", api->launch);
  driver.find("cuEventCreate", api->create_event);
  driver.find("cuEventDestroy_v2", api->destroy_event);
  driver.find("cuEventRecord", api->record_event);
  driver.find("cuEventSynchronize", api->synchronize_event);
  driver.find("cuEventElapsedTime", api->get_elapsed_ms);
  driver.find("cuStreamBeginCapture_v2", api->begin_capture);
  driver.find("cuStreamEndCapture", api->end_capture);
  driver.find("cuGraphInstantiateWithFlags", api->instantiate);
  driver.find("cuGraphLaunch", api->launch_graph);
  driver.find("cuGraphDestroy", api->destroy_graph);
  driver.find("cuGraphExecDestroy", api->destroy_graph_exec);
  driver.find("cuPointerGetAttribute", api->get_pointer_attribute);
  TS_RETURN_IF_ERROR(driver.complete());
  driver.find("cuTensorMapEncodeTiled", api->encode_tiled);
  TS_RETURN_IF_ERROR(initialize(*api, file));
  return std::shared_ptr<const Api>(api);
}

}  // namespace tensorsmith::runtime::cuda

#include "runtime/device/opencl_api.h"

#include "runtime/device/driver_library.h"

namespace tensorsmith::runtime::opencl {
namespace {

constexpr const char* kLibrary = "libOpenCL.so.1";
constexpr const char* kRemedy =
    "install OpenCL's loader and a driver for the device (Debian: ocl-icd-libopencl1, and pocl-opencl-icd "
    "for processors)";

}  // namespace

std::string error_text(int32_t code) {
  switch (code) {
    case kDeviceNotFound:
      return "CL_DEVICE_NOT_FOUND";
    case kMemoryAllocationFailure:
      return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case kOutOfResources:
      return "CL_OUT_OF_RESOURCES";
    case kOutOfHostMemory:
      return "CL_OUT_OF_HOST_MEMORY";
    case kBuildProgramFailure:
      return "CL_BUILD_PROGRAM_FAILURE";
    case kInvalidKernelName:
      return "CL_INVALID_KERNEL_NAME";
    case kInvalidWorkGroupSize:
      return "CL_INVALID_WORK_GROUP_SIZE";
    case kInvalidWorkItemSize:
      return "CL_INVALID_WORK_ITEM_SIZE";
    case kInvalidBufferSize:
      return "CL_INVALID_BUFFER_SIZE";
    case kPlatformNotFound:
      return "CL_PLATFORM_NOT_FOUND_KHR";
    default:
      return "error " + std::to_string(code);
  }
}

Result<std::shared_ptr<const Api>> load_api(const std::string& library) {
  TS_ASSIGN_OR_RETURN(DriverLibrary driver,
                      DriverLibrary::open(library.empty() ? kLibrary : library, kRemedy));
  const auto api = std::make_shared<Api>();
  driver.find("clGetPlatformIDs", api->get_platforms);
  driver.find("clGetDeviceIDs", api->get_devices);
  driver.find("clGetDeviceInfo", api->get_device_info);
  driver.find("clCreateContext", api->create_context);
  driver.find("clReleaseContext", api->release_context);
  driver.find("clCreateCommandQueue", api->create_queue);
  driver.find("clReleaseCommandQueue", api->release_queue);
  driver.find("clCreateBuffer", api->create_buffer);
  driver.find("clCreateSubBuffer", api->create_sub_buffer);
  driver.find("clGetMemObjectInfo", api->get_memory_info);
  driver.find("clRetainMemObject", api->retain_memory);
  driver.find("clReleaseMemObject", api->release_memory);
  driver.find("clCreateProgramWithSource", api->create_program);
  driver.find("clBuildProgram", api->build_program);
  driver.find("clGetProgramBuildInfo", api->get_build_info);
  driver.find("clReleaseProgram", api->release_program);
  driver.find("clCreateKernel", api->create_kernel);
  driver.find("clReleaseKernel", api->release_kernel);
  driver.find("clSetKernelArg", api->set_argument);
  driver.find("clGetKernelInfo", api->get_kernel_info);
  driver.find("clGetKernelWorkGroupInfo", api->get_work_group_info);
  driver.find("clEnqueueNDRangeKernel", api->enqueue_kernel);
  driver.find("clEnqueueReadBuffer", api->enqueue_read);
  driver.find("clEnqueueWriteBuffer", api->enqueue_write);
  driver.find("clEnqueueFillBuffer", api->enqueue_fill);
  driver.find("clFlush", api->flush);
  driver.find("clFinish", api->finish);
  driver.find("clGetEventProfilingInfo", api->get_event_profile);
  driver.find("clReleaseEvent", api->release_event);
  TS_RETURN_IF_ERROR(driver.complete());
  return std::shared_ptr<const Api>(api);
}

}  // namespace tensorsmith::runtime::opencl

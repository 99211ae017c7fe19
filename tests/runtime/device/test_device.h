// The device of tests that run kernels: the first of OpenCL, or of CUDA with
// TENSORSMITH_TEST_GPU=cuda.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "runtime/device/gpu.h"
#include "support/sanitizers.h"

namespace tensorsmith::runtime {

// Returns null if there is no device, and the test must be skipped; with TENSORSMITH_REQUIRE_OPENCL
// set, as in scripts/test, this is a failure. Also returns null under the thread sanitizer, which
// does not know how the driver's threads wait for each other.
inline std::unique_ptr<Gpu> opencl_device() {
  if (TENSORSMITH_THREAD_SANITIZER) return nullptr;
  const char* api = std::getenv("TENSORSMITH_TEST_GPU");
  auto gpu = open_gpu(require_gpu_place(api != nullptr ? api : "opencl").value());
  if (gpu.ok()) return std::move(gpu).value();
  EXPECT_FALSE(std::getenv("TENSORSMITH_REQUIRE_OPENCL")) << gpu.error().message();
  return nullptr;
}

}  // namespace tensorsmith::runtime

#define TS_OPENCL_OR_SKIP(gpu)                                                                      \
  const std::unique_ptr<::tensorsmith::runtime::Gpu> gpu = ::tensorsmith::runtime::opencl_device(); \
  if (!(gpu)) GTEST_SKIP() << "no OpenCL device; install pocl-opencl-icd"

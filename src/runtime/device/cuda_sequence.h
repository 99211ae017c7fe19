// State that the parts of the CUDA implementation share: a device's context and stream, memory,
// modules and launches.
#pragma once

#include <memory>
#include <string>

#include "runtime/device/cuda_api.h"
#include "runtime/device/gpu.h"

namespace tensorsmith::runtime::cuda {

struct CudaShared {
  std::shared_ptr<const Api> api;
  GpuProperties properties;
  Device device = 0;
  Context context = nullptr;
  Stream stream = nullptr;
  Module hold_module = nullptr;
  Function hold = nullptr;  // see start_timing()
  bool lost = false;

  CudaShared() = default;
  CudaShared(const CudaShared&) = delete;
  CudaShared& operator=(const CudaShared&) = delete;
  ~CudaShared();

  // Makes the context current on the calling thread, as every call of the driver requires.
  Status enter();
  Status check(int code, const std::string& call);
  // Launches a kernel that keeps the device busy for some microseconds and records `begin` behind
  // it. Subsequent launches then wait in the stream. On an idle device, the event would be recorded
  // too early, by the time that a launch takes.
  Status start_timing(Event begin);
  Status wait() { return check(api->synchronize_stream(stream), "cuStreamSynchronize"); }
};

class CudaMemory final : public GpuMemory {
 public:
  enum class Owner : uint8_t { kThis, kCaller };
  CudaMemory(CudaShared& shared, Address address, int64_t bytes, Owner owner = Owner::kThis)
      : shared_(shared), address_(address), bytes_(bytes), owner_(owner) {}
  ~CudaMemory() override {
    if (owner_ == Owner::kThis && shared_.enter().ok()) shared_.api->free(address_);
  }
  int64_t bytes() const override { return bytes_; }
  Address address() const { return address_; }

 private:
  CudaShared& shared_;
  Address address_;
  int64_t bytes_;
  Owner owner_;
};

Address address_of(const GpuSpan& span);

class CudaModule final : public GpuModule {
 public:
  CudaModule(CudaShared& shared, Module module) : shared_(shared), module_(module) {}
  ~CudaModule() override {
    if (shared_.enter().ok()) shared_.api->unload_module(module_);
  }
  Module get() const { return module_; }

 private:
  CudaShared& shared_;
  Module module_;
};

Result<std::unique_ptr<GpuSequence>> make_sequence(CudaShared& shared);

}  // namespace tensorsmith::runtime::cuda

// Interface of another library for bench_peers. Each library is a module of its own, loaded at run time,
// so that the symbols of different libraries, or of versions of one library, do not conflict.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "cases.h"

namespace tensorsmith::peers {

// Aligns memory to cache lines: no line is shared, and vector loads do not cross lines. All engines get
// such memory.
template <typename T>
struct CacheLineAllocator {
  using value_type = T;
  CacheLineAllocator() = default;
  template <typename U>
  explicit CacheLineAllocator(const CacheLineAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
  void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t(64)); }
  friend bool operator==(CacheLineAllocator, CacheLineAllocator) { return true; }
};
using Floats = std::vector<float, CacheLineAllocator<float>>;

struct ConvData {
  const float* input;
  const float* weights;
  const float* bias;
  const float* residual;  // null without one
};

// One implementation of a case in the library. The kernel holds the data, in the library's layouts.
class PeerKernel {
 public:
  virtual ~PeerKernel() = default;
  virtual void run() = 0;
  // Called before the first and after the last of several timed runs. Libraries whose threads the system
  // may place anywhere pin each thread to a processor in begin(), since two threads on one processor
  // wait for each other for whole time slices; end() removes the restriction of the calling thread.
  virtual void begin() {}
  virtual void end() {}
  // Returns the last run's result, row-major (NCHW).
  virtual Floats output() = 0;

  std::string variant;  // name of the variant in the report: "packed", "NCHW", ...
  std::string detail;   // the implementation that the library chose
};

using PeerKernels = std::vector<std::unique_ptr<PeerKernel>>;

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string name() const = 0;
  virtual std::string version() const = 0;  // includes the instruction set that the library chose
  // Return the library's variants for a case, or none if it cannot compute the case. The kernels run on
  // `threads` threads. Errors of the library are thrown.
  virtual PeerKernels gemm(const GemmCase& shape, const float* a, const float* b, int threads) = 0;
  virtual PeerKernels conv(const ConvCase& shape, const ConvData& data, int threads) = 0;
};

// Every module exports a function of this type and name.
using MakePeer = Peer* (*)();
inline constexpr const char* kMakePeer = "tensorsmith_make_peer";

}  // namespace tensorsmith::peers

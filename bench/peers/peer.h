// How bench_peers sees another library. Each one is a module of its own, loaded at run time, so that their
// symbols and several versions of one library do not meet.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "cases.h"

namespace tensorsmith::peers {

// Cache lines are not shared, and vector loads do not cross them: every engine gets such memory.
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

// One way of the library to compute a case; the data is inside, in the library's layouts.
class PeerKernel {
 public:
  virtual ~PeerKernel() = default;
  virtual void run() = 0;
  // Before the first and after the last of several runs that are timed: libraries that leave their threads
  // where the system puts them give each a processor of its own (two on one processor wait for each other for
  // whole time slices), and take the calling thread's restriction back.
  virtual void begin() {}
  virtual void end() {}
  // The last run's result, row-major (NCHW).
  virtual Floats output() = 0;

  std::string variant;  // "packed", "NCHW", ...: the column
  std::string detail;   // the implementation that the library chose
};

using PeerKernels = std::vector<std::unique_ptr<PeerKernel>>;

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string name() const = 0;
  virtual std::string version() const = 0;  // with the instruction set it picked
  // All variants that the library has for a case; a library that cannot compute it has none. The kernels run
  // on `threads` threads. A library's error is thrown.
  virtual PeerKernels gemm(const GemmCase& shape, const float* a, const float* b, int threads) = 0;
  virtual PeerKernels conv(const ConvCase& shape, const ConvData& data, int threads) = 0;
};

// Every module exports this.
using MakePeer = Peer* (*)();
inline constexpr const char* kMakePeer = "tensorsmith_make_peer";

}  // namespace tensorsmith::peers

// A kernel that reports its execution while it runs: the blocks that it executes and the addresses
// that it accesses. For each block, the number of machine instructions of each kind is known.
// Simulated profiles (measure/profile) are computed from these reports.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "codegen/backend.h"

namespace tensorsmith::codegen {

// Counts of a block's instructions. Each instruction is of one kind; its memory operand is counted
// in addition.
enum class MachineCount : uint8_t {
  kInstructions,
  kFma,              // fused multiply-adds and dot products on vectors
  kArithmetic,       // other arithmetic and logic on vectors
  kScalarFloat,      // floating-point arithmetic of one element
  kDivisions,        // divisions and square roots
  kShuffles,         // moves between lanes, or between vector and other registers
  kMoves,            // vector loads, stores and register moves
  kMasks,            // instructions on mask registers
  kInteger,          // integer and address arithmetic
  kBranches,         // branches, calls and returns
  kPrefetches,       // software prefetches
  kLoads,            // memory operands that are read, without kReloads and kBroadcasts
  kBroadcasts,       // loads that broadcast one element to all lanes
  kGathers,          // gathers and scatters
  kStores,           // memory operands that are written, without kSpills
  kSpills,           // registers that are stored to the stack for lack of registers
  kReloads,          // loads of spilled registers
  kArithmeticBytes,  // total width of the registers of kFma and kArithmetic
  kChain,            // length of the longest chain of dependent floating-point operations
};
inline constexpr std::array<std::string_view, 19> kMachineCountNames = {
    "instructions", "fma",     "arithmetic", "scalar_float",     "divisions", "shuffles",   "moves",
    "masks",        "integer", "branches",   "prefetches",       "loads",     "broadcasts", "gathers",
    "stores",       "spills",  "reloads",    "arithmetic_bytes", "chain"};
class MachineMix {
 public:
  double& operator[](MachineCount count) { return counts_[static_cast<size_t>(count)]; }
  double operator[](MachineCount count) const { return counts_[static_cast<size_t>(count)]; }
  void add(const MachineMix& other, double times) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += times * other.counts_[i];
  }
  const std::array<double, kMachineCountNames.size()>& counts() const { return counts_; }

 private:
  std::array<double, kMachineCountNames.size()> counts_{};
};

// The buffer that a traced kernel writes reports to. A report is the number of a segment, followed
// by the address of each of its accesses. Before a report that begins beyond `limit`, the kernel
// calls drain, which reads the reports and resets `next`. A report has at most kMostReport numbers.
struct TraceBuffer {
  uint64_t* next = nullptr;
  uint64_t* limit = nullptr;
  void (*drain)(TraceBuffer*) = nullptr;
};
inline constexpr size_t kMostReport = size_t{1} << 14;

struct TracedAccess {
  enum class Kind : uint8_t { kLoad, kStore, kPrefetch };
  Kind kind = Kind::kLoad;
  int32_t bytes = 0;
};
// A straight sequence of instructions that ends at the end of a block or at a call.
struct TracedSegment {
  size_t block = 0;  // index into TracedKernel::blocks
  bool begins_block = false;
  std::vector<TracedAccess> accesses;
};

struct TracedKernel {
  // Works only in this process, on one thread, and only while the buffer that it was made for stays
  // at its address.
  CompiledKernel kernel;
  std::vector<TracedSegment> segments;
  std::vector<MachineMix> blocks;  // counts of the kernel without the reporting code
};

}  // namespace tensorsmith::codegen

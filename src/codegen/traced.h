// A kernel that says what it does while it runs: which blocks it executes and which addresses it touches, and how many
// machine instructions of which kinds each block is. Simulated profiles (measure/profile) are made of it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "codegen/backend.h"

namespace tensorsmith::codegen {

// What is counted of the instructions of a block. An instruction is of one kind; its memory operand counts beside it.
enum class MachineCount : uint8_t {
  kInstructions,
  kFma,              // fused multiply-adds and dot products of vectors
  kArithmetic,       // other arithmetic and logic of vectors
  kScalarFloat,      // floating-point arithmetic of one element
  kDivisions,        // and square roots
  kShuffles,         // between lanes, or between vector and other registers
  kMoves,            // of vectors: loads, stores, register to register
  kMasks,            // of mask registers
  kInteger,          // integers and addresses
  kBranches,         // calls and returns too
  kPrefetches,       // by software
  kLoads,            // operands in memory that are read, without kReloads and kBroadcasts
  kBroadcasts,       // of one element in memory to all lanes
  kGathers,          // gathers and scatters
  kStores,           // operands in memory that are written, without kSpills
  kSpills,           // registers stored on the stack, as there are too few
  kReloads,          // of these
  kArithmeticBytes,  // widths of the registers of kFma and kArithmetic
  kChain,  // floating-point operations of which each waits for the one before it, on the longest path
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

// Where a traced kernel writes. A report is the number of a segment, then the address of each of its accesses. Before
// one that begins beyond `limit` the kernel calls drain, which reads what is there and sets `next` back; a report has at
// most kMostReport numbers.
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
// Instructions that run one after the other, to the end of a block or to a call.
struct TracedSegment {
  size_t block = 0;  // in TracedKernel::blocks
  bool begins_block = false;
  std::vector<TracedAccess> accesses;
};

struct TracedKernel {
  // Works in this process only, while the buffer that it was made for is where it was, and on one thread.
  CompiledKernel kernel;
  std::vector<TracedSegment> segments;
  std::vector<MachineMix> blocks;  // of the kernel as it is without reports
};

}  // namespace tensorsmith::codegen

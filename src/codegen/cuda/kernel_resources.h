// Resources of a multiprocessor that a compiled CUDA kernel uses, as the assembler (ptxas) reports
// them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensorsmith::codegen {

struct KernelResources {
  std::string symbol;
  int registers = 0;         // 32-bit registers per thread
  int64_t shared_bytes = 0;  // static shared memory per block
  int64_t stack_bytes = 0;   // local memory per thread: arrays with variable indices, and spilled
                             // registers
  int64_t spill_store_bytes = 0, spill_load_bytes = 0;  // bytes that all spill instructions move,
                                                        // per thread
  int barriers = 0;
  friend bool operator==(const KernelResources&, const KernelResources&) = default;
};

// Parses the output of `ptxas -v` and returns the kernels sorted by symbol; unrelated lines are
// skipped. Returns kCorrupt if figures of a kernel are missing.
Result<std::vector<KernelResources>> parse_ptxas_log(std::string_view log);

}  // namespace tensorsmith::codegen

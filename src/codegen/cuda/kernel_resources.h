// What a compiled CUDA kernel takes of a multiprocessor, as the assembler (ptxas) reports it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensorsmith::codegen {

struct KernelResources {
  std::string symbol;
  int registers = 0;         // of 32 bits, a thread
  int64_t shared_bytes = 0;  // that the kernel declares, a block
  int64_t stack_bytes = 0;   // of local memory, a thread: arrays that are indexed, and spilled registers
  int64_t spill_store_bytes = 0, spill_load_bytes = 0;  // of all instructions that move them, a thread
  int barriers = 0;
  friend bool operator==(const KernelResources&, const KernelResources&) = default;
};

// Of the output of `ptxas -v`, sorted by symbol; other lines are passed over. kCorrupt: a kernel without figures.
Result<std::vector<KernelResources>> parse_ptxas_log(std::string_view log);

}  // namespace tensorsmith::codegen

#include "codegen/cuda/kernel_resources.h"

#include <algorithm>
#include <charconv>

namespace tensorsmith::codegen {
namespace {

// Returns the number before `unit` in "Used 32 registers, used 1 barriers, 1024 bytes smem"; 0 if
// the unit does not appear.
int64_t number_before(std::string_view line, std::string_view unit) {
  const size_t at = line.find(unit);
  if (at == std::string_view::npos) return 0;
  size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int64_t value = 0;
  std::from_chars(line.data() + begin, line.data() + at, value);
  return value;
}

// Returns the text between `before` and the next quote.
std::string quoted_after(std::string_view line, std::string_view before) {
  const size_t begin = line.find(before) + before.size();
  return std::string(line.substr(begin, line.find('\'', begin) - begin));
}

}  // namespace

// The log contains for each kernel, in this order:
//   ptxas info    : Compiling entry function 'add' for 'sm_80'
//   ptxas info    : Function properties for add
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 12 registers, used 0 barriers, 376 bytes cmem[0]
Result<std::vector<KernelResources>> parse_ptxas_log(std::string_view log) {
  constexpr std::string_view kEntry = "Compiling entry function '";
  std::vector<KernelResources> kernels;
  while (!log.empty()) {
    const size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log = end == std::string_view::npos ? std::string_view() : log.substr(end + 1);
    if (line.find(kEntry) != std::string_view::npos) {
      kernels.emplace_back().symbol = quoted_after(line, kEntry);
    } else if (!kernels.empty() && line.find(" bytes stack frame") != std::string_view::npos) {
      kernels.back().stack_bytes = number_before(line, " bytes stack frame");
      kernels.back().spill_store_bytes = number_before(line, " bytes spill stores");
      kernels.back().spill_load_bytes = number_before(line, " bytes spill loads");
    } else if (!kernels.empty() && line.find(" registers") != std::string_view::npos) {
      kernels.back().registers = number_before(line, " registers");
      kernels.back().barriers = number_before(line, " barriers");
      kernels.back().shared_bytes = number_before(line, " bytes smem");
    }
  }
  for (const KernelResources& kernel : kernels) {
    if (kernel.registers == 0)
      return Error{ErrorCode::kCorrupt, "ptxas", "does not report the registers of kernel " + kernel.symbol};
  }
  std::sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.symbol < b.symbol; });
  return kernels;
}

}  // namespace tensorsmith::codegen

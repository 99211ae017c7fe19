// Input: text. parse_manifest never crashes, and an accepted manifest is valid, prints, and parses to the
// same text. Input that is JSON is also tried with the right hash: otherwise few inputs would pass the
// check of the hash.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "runtime/kernel_abi.h"
#include "runtime/model_format.h"

namespace {

namespace runtime = tensorsmith::runtime;

void try_manifest(std::string_view text) {
  const auto description = runtime::parse_manifest(text);
  if (!description.ok()) return;
  if (!runtime::validate(*description).ok()) std::abort();
  const std::string printed = runtime::print_manifest(*description);
  const auto again = runtime::parse_manifest(printed);
  if (!again.ok() || runtime::print_manifest(*again) != printed) std::abort();
  // check_call() accepts a kernel with the call's own demands and refuses one with another buffer.
  for (const auto& call : description->calls) {
    std::vector<int64_t> demands = {TENSORSMITH_KERNEL_ABI_VERSION,
                                    static_cast<int64_t>(call.buffers.size()) - call.outputs, call.outputs,
                                    call.shared_workspace_bytes, call.thread_workspace_bytes};
    for (const auto& buffer : call.buffers) demands.push_back(buffer.bytes);
    if (!runtime::check_call(call, demands.data()).ok()) std::abort();
    ++demands[TENSORSMITH_INFO_INPUTS];
    if (runtime::check_call(call, demands.data()).ok()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_manifest(text);
  if (const auto sealed = runtime::seal_manifest(text); sealed.ok()) try_manifest(*sealed);
  return 0;
}

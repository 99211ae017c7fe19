// Any text: parse_manifest never crashes, and what it accepts is valid, prints, and parses to the same text.
#include <cstdint>
#include <cstdlib>

#include "runtime/model_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace runtime = tensorsmith::runtime;
  const auto description = runtime::parse_manifest({reinterpret_cast<const char*>(data), size});
  if (!description.ok()) return 0;
  if (!runtime::validate(*description).ok()) std::abort();
  const std::string text = runtime::print_manifest(*description);
  const auto again = runtime::parse_manifest(text);
  if (!again.ok() || runtime::print_manifest(*again) != text) std::abort();
  return 0;
}

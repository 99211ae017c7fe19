// Input: text. parse_device never crashes, and an accepted device prints and parses to the same device.
#include <cstdint>
#include <cstdlib>

#include "target/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  const auto device = target::parse_device({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!device.ok()) return 0;
  const auto again = target::parse_device(target::to_json(*device), "again");
  if (!again.ok() || target::to_json(*again) != target::to_json(*device)) std::abort();
  return 0;
}

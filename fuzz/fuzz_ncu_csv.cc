// Input: text. parse_ncu_csv never crashes, and every metric that it accepts has a name.
#include <cstdint>
#include <cstdlib>

#include "record/ncu_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  const auto launches = record::parse_ncu_csv({reinterpret_cast<const char*>(data), size});
  if (!launches.ok()) return 0;
  for (const auto& [name, ignored] : record::merge_launches(*launches))
    if (name.empty()) std::abort();
  return 0;
}

// Any text: reading a forest never crashes, and an accepted one can be evaluated and written.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "learn/gbt/forest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  const auto forest = learn::Forest::from_json({reinterpret_cast<const char*>(data), size});
  if (!forest.ok()) return 0;
  constexpr size_t kRows = 9;
  std::vector<float> rows(kRows * static_cast<size_t>(forest->width()), 0.5F);
  std::vector<float> values(kRows);
  forest->predict(rows, values);
  if (!learn::Forest::from_json(forest->to_json()).ok()) std::abort();
  return 0;
}

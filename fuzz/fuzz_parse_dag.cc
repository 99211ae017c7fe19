// Input: text. parse_dag never crashes, and an accepted DAG is a workload that prints and parses.
#include <cstdint>
#include <cstdlib>

#include "ir/text.h"
#include "record/ansor/dag.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  const auto parsed = record::parse_dag({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) return 0;
  if (!ir::verify(*parsed).ok() || !ir::parse_workload(ir::print(*parsed)).ok()) std::abort();
  return 0;
}

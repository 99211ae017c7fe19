// Input: text. parse_workload never crashes. An accepted workload verifies, prints and parses to the same
// workload, and can be simplified.
#include <cstdint>
#include <cstdlib>

#include "ir/simplify.h"
#include "ir/structural.h"
#include "ir/text.h"

namespace {

using namespace tensorsmith;  // NOLINT(google-build-using-namespace)

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto workload = ir::parse_workload({reinterpret_cast<const char*>(data), size});
  if (!workload.ok()) {
    require(!workload.error().place.empty() && !workload.error().reason.empty());
    return 0;
  }
  require(ir::verify(*workload).ok());
  const std::string text = ir::print(*workload);
  const auto again = ir::parse_workload(text);
  require(again.ok());
  require(ir::structural_equal(*workload, *again) &&
          ir::structural_key(*workload) == ir::structural_key(*again));
  require(ir::print(*again) == text);
  require(ir::flop_count(*workload) >= 0);
  for (const ir::OperationRef& op : workload->operations) {
    ir::VarBounds ranges;
    for (const auto* axes : {&op->spatial, &op->reduce}) {
      for (const ir::Axis& axis : *axes) {
        if (axis.extent > 0) ranges[axis.var.get()] = {0, axis.extent - 1};
      }
    }
    for (const ir::Expr& body : op->bodies) require(ir::simplify(body, ranges).dtype() == body.dtype());
  }
  return 0;
}

// Input: text. parse_program never crashes. An accepted program prints and parses to the same program.
#include <cstdint>
#include <cstdlib>

#include "ir/structural.h"
#include "ir/text.h"
#include "ir/verify_program.h"

namespace {

using namespace tensorsmith;  // NOLINT(google-build-using-namespace)

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto program = ir::parse_program({reinterpret_cast<const char*>(data), size});
  if (!program.ok()) {
    require(!program.error().place.empty() && !program.error().reason.empty());
    return 0;
  }
  const std::string text = ir::print(*program);
  const auto again = ir::parse_program(text);
  require(again.ok());
  require(ir::structural_equal(*program, *again) &&
          ir::structural_key(*program) == ir::structural_key(*again));
  require(ir::print(*again) == text);
  if (ir::verify(*program).ok()) (void)ir::verify_in_bounds(*program).ok();
  return 0;
}

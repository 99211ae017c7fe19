#include "codegen/c/dialect.h"

#include "codegen/c/codegen.h"

namespace tensorsmith::codegen {

namespace {

// Not part of the header, which callers of kernels include too: the pragma must not affect their
// loops.
constexpr std::string_view kPrologue =
    "#if defined(__GNUC__) && !defined(__clang__)\n"
    "/* GCC 12's own vectorizer gets sums of ts_dot4() wrong. What gains from vectors is written with them. "
    "*/\n"
    "#pragma GCC optimize(\"no-tree-vectorize\")\n"
    "#endif\n";

}  // namespace

const Dialect& c99() {
  static const Dialect dialect = {.header = kCHeaderName,
                                  .prologue = kPrologue,
                                  .restrict_pointer = "restrict",
                                  .function = "static",
                                  .aligned = "TS_ALIGNED",
                                  .vectors = "TENSORSMITH_VECTORS"};
  return dialect;
}

}  // namespace tensorsmith::codegen

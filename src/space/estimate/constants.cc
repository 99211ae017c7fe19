#include "space/estimate/constants.h"

namespace tensorsmith::space {

std::span<const ConstantInfo> constant_table() {
#define TENSORSMITH_ROW(name, value, unit, source, meaning) {#name, &Constants::name, unit, source, meaning},
  static constexpr ConstantInfo kTable[] = {TENSORSMITH_ESTIMATE_CONSTANTS(TENSORSMITH_ROW)};
#undef TENSORSMITH_ROW
  return kTable;
}

const Constants& default_constants() {
  static constexpr Constants kConstants;
  return kConstants;
}

}  // namespace tensorsmith::space

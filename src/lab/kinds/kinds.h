// The kinds of cost models kept for comparison. A new one needs a file of its own and a line in
// kinds.cc.
#pragma once

#include "learn/latency/kinds.h"

namespace tensorsmith::lab {

const learn::CostModelKind& random_kind();
const learn::CostModelKind& draft_kind();

// All kinds: those of the product, then those kept for comparison.
const learn::CostModelKinds& cost_model_kinds();

}  // namespace tensorsmith::lab

// The per-store features of programs with affine indices, by enumerating what the definition speaks about:
// every iteration, every touched index, addresses of neighbouring iterations. Slow; for small programs.
#pragma once

#include "feature/per_store.h"

namespace tensorsmith::feature::testing {

FeatureMatrix slow_per_store(const ir::Program& program, int cacheline_bytes);

}  // namespace tensorsmith::feature::testing

// The per-store features of programs with affine indices, computed by enumerating the objects of
// the definition: every iteration, every accessed index, addresses of neighbouring iterations.
// Slow; only for small programs.
#pragma once

#include "feature/per_store.h"

namespace tensorsmith::feature::testing {

FeatureMatrix slow_per_store(const ir::Program& program, int cacheline_bytes);

}  // namespace tensorsmith::feature::testing

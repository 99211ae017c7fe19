// The most direct loop program of a workload, and random annotated variations of programs.
#pragma once

#include "base/rng.h"
#include "ir/stmt.h"
#include "ir/workload.h"

namespace tensorsmith::test {

// One serial loop nest an operation in order, reductions initialized and then updated in place. Parameters as
// a lowered schedule has them: the placeholders, then the workload's outputs.
ir::Program naive_program(const ir::Workload& workload);

// The same computation with loops split (guarded where the factor does not divide), and kinds and pragmas set
// at random. Still valid, and provably in bounds.
ir::Program random_variation(const ir::Program& program, Rng& rng);

}  // namespace tensorsmith::test

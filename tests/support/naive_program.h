// The most direct loop program of a workload, and random annotated variations of programs.
#pragma once

#include "base/rng.h"
#include "ir/stmt.h"
#include "ir/workload.h"

namespace tensorsmith::test {

// Makes one serial loop nest per operation, in order; reductions are initialized and then updated
// in place. Parameters are those of a lowered schedule: the placeholders, then the workload's
// outputs.
ir::Program naive_program(const ir::Workload& workload);

// Returns the same computation with loops split (guarded if the factor does not divide), and kinds
// and pragmas set at random. The result is valid and provably in bounds.
ir::Program random_variation(const ir::Program& program, Rng& rng);

}  // namespace tensorsmith::test

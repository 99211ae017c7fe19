// Stores of fragments in which four neighbouring lanes (a quad) each have two adjacent elements of
// eight columns, in each step of a loop. Each such store writes half a sector of memory, which
// takes as long as a whole one. The lanes of a quad can exchange the values of four steps, so that
// each lane stores the eight columns of one step.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/bounds.h"
#include "ir/stmt.h"

namespace tensorsmith::codegen {

// Returns the distance between the four steps that are exchanged: step = 4 * apart * group + apart
// * which + rest, with rest < apart, is number `which` of its four. `step` is the variable of a
// loop of `steps` iterations around the vectorized loop over `lane`, which executes the store
// twice; `thread` is the index of a thread in its warp. Returns nothing if the store has another
// form.
std::optional<int64_t> find_quad_store(const ir::Store& store, const ir::Var& step, int64_t steps,
                                       const ir::Var& lane, const ir::Var& thread,
                                       const ir::VarBounds& bounds);

}  // namespace tensorsmith::codegen

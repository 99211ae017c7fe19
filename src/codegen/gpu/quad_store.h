// Stores of fragments, where four neighbouring lanes (a quad) have two neighbouring elements each of eight columns, loop step by
// loop step. Half of a sector of memory is written at a time so, which takes as long as a whole one. Of four steps the quad can
// exchange what it has, so that each lane stores the eight columns of one.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/bounds.h"
#include "ir/stmt.h"

namespace tensorsmith::codegen {

// How many steps the four are apart: of a loop's, 4 * apart * group + apart * which + rest with rest < apart are `which` of four.
// step: of a loop of so many steps around the vectorized loop over `lane`, which has two iterations of the store; thread: the
// index of a thread in its warp. None: stores of other shapes.
std::optional<int64_t> find_quad_store(const ir::Store& store, const ir::Var& step, int64_t steps,
                                       const ir::Var& lane, const ir::Var& thread,
                                       const ir::VarBounds& bounds);

}  // namespace tensorsmith::codegen

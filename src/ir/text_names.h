// What the printer and the parser of the text form share.
#pragma once

#include <string>
#include <string_view>

#include "ir/expr.h"

namespace tensorsmith::ir {

// Binding strength of an infix operator: higher binds tighter, equal ones group to the left.
int strength_of(BinaryOp op);
// Letters, digits, '_' and '.', not starting with a digit, and no literal word.
bool is_plain_name(std::string_view name);
// The name itself if plain, else in quotes with escapes.
std::string quote_name(const std::string& name);

}  // namespace tensorsmith::ir

// Functions that the printer and the parser of the text form share.
#pragma once

#include <string>
#include <string_view>

#include "ir/expr.h"

namespace tensorsmith::ir {

// Precedence of an infix operator: higher binds tighter, equal ones group to the left.
int strength_of(BinaryOp op);
// Returns whether the name consists of letters, digits, '_' and '.', does not start with a digit,
// and is not a literal's word.
bool is_plain_name(std::string_view name);
// Returns the name itself if it is plain, else in quotes with escapes.
std::string quote_name(const std::string& name);

}  // namespace tensorsmith::ir

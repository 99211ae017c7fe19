// Makes the element types of base/dtype.h members of namespace ir.
#pragma once

#include "base/dtype.h"

namespace tensorsmith::ir {

using tensorsmith::bits_of;
using tensorsmith::bytes_of;
using tensorsmith::DType;
using tensorsmith::is_float;
using tensorsmith::is_int;
using tensorsmith::is_short_float;
using tensorsmith::is_signed_int;
using tensorsmith::is_unsigned_int;
using tensorsmith::parse_dtype;
using tensorsmith::to_string;

}  // namespace tensorsmith::ir

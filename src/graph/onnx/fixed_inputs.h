// Inputs whose contents the user writes down, so that they become constants.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lower/interpreter.h"

namespace tensorsmith::graph {

// Returns the tensor that the text describes: numbers, or true and false, separated by commas. `lengths` are
// those of the input's dimensions, -1 where the model leaves one open, or nothing if it leaves all open. One
// number fills an input whose lengths are known. Errors: kInvalidArgument if a number is none of the dtype,
// or if the count of numbers does not fit.
Result<lower::Tensor> tensor_of_text(const std::string& text, ir::DType dtype,
                                     const std::optional<std::vector<int64_t>>& lengths);

}  // namespace tensorsmith::graph

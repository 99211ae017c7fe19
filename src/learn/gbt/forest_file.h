// Stores trees as tensors of a file: NAME.sizes (I32, by tree), NAME.number (F32), NAME.feature and
// NAME.left (U16, by node).
#pragma once

#include <string>

#include "learn/gbt/forest.h"
#include "learn/tensor_file.h"

namespace tensorsmith::learn {

void add_forest(TensorFile& file, const std::string& name, const Forest& forest);
// kCorrupt if the file has no such trees for rows of this width.
Result<Forest> read_forest(const TensorFile& file, const std::string& name, size_t width);

}  // namespace tensorsmith::learn

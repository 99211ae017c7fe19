// Reads tensors for `run --input`; the file name's ending selects the format.
#pragma once

#include <string>

#include "base/result.h"
#include "lower/interpreter.h"
#include "runtime/model_format.h"

namespace tensorsmith::tools {

//   .npy, .npz   NumPy; of an .npz the array with the input's name, or the only one
//   .raw, .bin   the elements alone, little-endian and row-major, of the input's dtype and shape
//   any other    ONNX TensorProto
// Errors, the place is the path: those of open_input; kCorrupt for a damaged file; kUnsupported for
// arrays that no model takes (big-endian, complex, text); kInvalidArgument for an .npz of several
// arrays none of which has the name, and for raw bytes whose number differs from that of the input.
Result<lower::Tensor> read_tensor(const std::string& path, const runtime::TensorInfo& input);

}  // namespace tensorsmith::tools

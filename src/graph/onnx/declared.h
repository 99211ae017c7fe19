// What an ONNX file says of its inputs and outputs, without importing it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/dtype.h"

namespace tensorsmith::graph {

struct DeclaredDimension {
  int64_t length = -1;  // -1: chosen when the model is used
  std::string name;     // of a length that is chosen; may be empty
};

struct DeclaredTensor {
  std::string name;
  std::optional<ir::DType> dtype;                       // none: no tensor, or of a type that is not supported
  std::optional<std::vector<DeclaredDimension>> shape;  // none: the file does not say
};

struct DeclaredTensors {
  std::vector<DeclaredTensor> inputs;  // in the file's order, without initializers
  std::vector<DeclaredTensor> outputs;
  // Files that hold contents of tensors, as the model names them: below its folder, unless the model is malicious. Sorted.
  std::vector<std::string> external_files;
};

// Errors: those of reading a file, kCorrupt.
Result<DeclaredTensors> onnx_declared(const std::string& path);

}  // namespace tensorsmith::graph

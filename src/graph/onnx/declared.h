// Reads the declared inputs and outputs of an ONNX file without importing it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/dtype.h"

namespace tensorsmith::graph {

struct DeclaredDimension {
  int64_t length = -1;  // -1: to be chosen when the model is used
  std::string name;     // name of a length that is to be chosen; may be empty
};

struct DeclaredTensor {
  std::string name;
  std::optional<ir::DType> dtype;                       // none: not a tensor, or its type is not supported
  std::optional<std::vector<DeclaredDimension>> shape;  // none: not declared in the file
};

struct DeclaredTensors {
  std::vector<DeclaredTensor> inputs;  // in the file's order, without initializers
  std::vector<DeclaredTensor> outputs;
  // Files with contents of tensors, by their names in the model: below its folder, unless the model
  // is malicious. Sorted.
  std::vector<std::string> external_files;
};

// Errors: those of reading a file, and kCorrupt.
Result<DeclaredTensors> onnx_declared(const std::string& path);

}  // namespace tensorsmith::graph

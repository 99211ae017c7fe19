// Writing compiled models.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/model_format.h"

namespace tensorsmith::runtime {

struct WeightData {
  std::string name;
  std::span<const std::byte> bytes;  // in the layout that the kernels expect
};

// Writes the model to a new directory beside `directory`, flushes it to disk and renames it: whatever happens
// (full disk, kill -9), `directory` holds either what it held before or the whole new model. An existing
// compiled model is replaced; anything else at that place, except an empty directory, is an error.
//
// kernels: the bytes of a shared library with the symbols of description.calls. weights[i] becomes weight i
// of the description, whose own weight table, sizes and hashes are ignored.
Status write_model(const std::string& directory, ModelDescription description, std::span<const char> kernels,
                   const std::vector<WeightData>& weights);
// The same, with the shared library in a file.
Status write_model(const std::string& directory, ModelDescription description,
                   const std::string& kernels_path, const std::vector<WeightData>& weights);

}  // namespace tensorsmith::runtime

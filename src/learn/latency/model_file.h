// The file format of a latency model: tensors, with the model's card as metadata
// (learn/tensor_file.h).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "learn/cost_model.h"
#include "learn/tensor_file.h"

namespace tensorsmith::learn {

inline constexpr int kModelFileVersion = 1;

struct ModelFile : TensorFile {
  ModelCard card;  // becomes the metadata when the file is written
};

std::string to_bytes(const ModelFile& file);
// kCorrupt if the bytes are damaged or not a model; kMismatch for a model of another version of
// this format or of the features (feature::kPerStoreVersion). Safe on arbitrary bytes.
Result<ModelFile> parse_model_file(std::string_view bytes);

// Replaces the file atomically.
Status write_model_file(const ModelFile& file, const std::string& path);
// Errors name the path as their place. kNotFound or kIo if the file cannot be read.
Result<ModelFile> read_model_file(const std::string& path);

}  // namespace tensorsmith::learn

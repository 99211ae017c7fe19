// The file of a latency model: tensors, and the model's card as metadata (learn/tensor_file.h).
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
// kCorrupt for what is damaged or no model; kMismatch for a model of another version of this format or of the
// features (feature::kPerStoreVersion). Any bytes are safe.
Result<ModelFile> parse_model_file(std::string_view bytes);

// Replaces the file at once or not at all.
Status write_model_file(const ModelFile& file, const std::string& path);
// The place of an error is the path. kNotFound or kIo where the file cannot be read.
Result<ModelFile> read_model_file(const std::string& path);

}  // namespace tensorsmith::learn

// Writing compiled models.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/model_format.h"

namespace tensorsmith::runtime {

// Returns whether write_model() may put a model there. Returns kInvalidArgument unless there is
// nothing, an empty directory, or a compiled model and nothing else: its manifest must be one of
// this format (any version), and every entry must be one of its files. So a directory that happens
// to contain a manifest.json (a browser extension) is not replaced.
Status check_replaceable(const std::string& directory);

// Writes the model to a new directory beside `directory` (its name + ".tmp-XXXXXX"), flushes it to
// disk and renames it. Whatever happens (full disk, kill -9), `directory` contains either its
// previous content or the complete new model. If the file system cannot exchange two directories,
// the previous content is for a moment in "model.old" in the temporary directory.
// check_replaceable() defines what may be replaced; only the files of a model are removed. An
// existing weights.bin with the same weights is kept.
//
// `kernels` has the bytes of a shared library with the symbols of description.calls or, for a GPU,
// of its modules. weights[i] becomes weight i of the description, whose own weight table, sizes and
// hashes are ignored.
Status write_model(const std::string& directory, ModelDescription description, std::span<const char> kernels,
                   const std::vector<WeightData>& weights);

}  // namespace tensorsmith::runtime

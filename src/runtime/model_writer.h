// Writing compiled models.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/model_format.h"

namespace tensorsmith::runtime {

// Whether write_model() may put a model there. kInvalidArgument unless nothing is there, an empty directory,
// or a compiled model and nothing else: its manifest reads as one of ours, of any version, and every entry is
// one of its files. A directory that happens to hold a manifest.json (a browser extension) stays.
Status check_replaceable(const std::string& directory);

// Writes the model to a new directory beside `directory` (its name + ".tmp-XXXXXX"), flushes it to disk and
// renames it: whatever happens (full disk, kill -9), `directory` holds either what it held before or the
// whole new model; where the file system cannot exchange two directories, what was there before is for a
// moment "model.old" in that directory beside. check_replaceable() says what may be replaced; of that only
// the files of a model are removed. A weights.bin that holds the same weights already is kept.
//
// kernels: the bytes of a shared library with the symbols of description.calls; of a GPU's model, of its modules. weights[i] becomes weight i
// of the description, whose own weight table, sizes and hashes are ignored.
Status write_model(const std::string& directory, ModelDescription description, std::span<const char> kernels,
                   const std::vector<WeightData>& weights);
// The same, with the shared library in a file.
Status write_model(const std::string& directory, ModelDescription description,
                   const std::string& kernels_path, const std::vector<WeightData>& weights);

}  // namespace tensorsmith::runtime

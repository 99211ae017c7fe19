// A model as C sources, for a device without our runtime or a compiler of its own: a directory with
//
//   tensorsmith_kernels.h  the kernel interface, declarations of the kernels and of the model, sizes of its memory
//   SYMBOL.c               a kernel each
//   model.c                tensorsmith_model(), which calls them in order
//   weights.bin            the constants that it is given
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/model_format.h"
#include "runtime/model_writer.h"

namespace tensorsmith::engine {

// Whether sources may be written there, before long work: nothing is there, or an empty directory.
Status check_c_directory(const std::string& directory);

// The directory is made if it is not there. symbols and texts: the kernels, each once. What the description
// says of weights' places is ignored, as in runtime::write_model().
Status write_c_model(const std::string& directory, const runtime::ModelDescription& description,
                     const std::vector<std::string>& symbols, const std::vector<std::vector<char>>& texts,
                     const std::vector<runtime::WeightData>& weights);

}  // namespace tensorsmith::engine

// A model as C sources, for a device without our runtime or a compiler of its own: a directory with
//
//   tensorsmith_kernels.h  the kernel interface and what kernels are made of, the same for all models
//   PREFIX_model.h         declarations of the kernels and of the model, sizes of its memory
//   PREFIX_task_N.c        a kernel each
//   PREFIX_model.c         PREFIX_model(), which calls them in order
//   weights.bin            the constants that it is given
//
// All that a linker or a preprocessor sees of a model begins with PREFIX, so that a program may have several.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/model_format.h"
#include "runtime/model_writer.h"

namespace tensorsmith::engine {

// kInvalidArgument if it is no lower-case name: macros have it in upper case.
Status check_c_prefix(const std::string& prefix);
// Whether sources may be written there, before long work: nothing is there, or an empty directory.
Status check_c_directory(const std::string& directory);

// The directory is made if it is not there. symbols and texts: the kernels, each once. What the description
// says of weights' places is ignored, as in runtime::write_model().
Status write_c_model(const std::string& directory, const std::string& prefix,
                     const runtime::ModelDescription& description, const std::vector<std::string>& symbols,
                     const std::vector<std::vector<char>>& texts,
                     const std::vector<runtime::WeightData>& weights);

}  // namespace tensorsmith::engine

// A model as C sources, for a device that has a C compiler but not Tensorsmith's runtime. The
// directory contains
//
//   tensorsmith_kernels.h  the kernel interface and its helpers, the same for all models
//   PREFIX_model.h         declarations of the kernels and of the model, sizes of its memory
//   PREFIX_task_N.c        one kernel each
//   PREFIX_model.c         PREFIX_model(), which calls them in order
//   weights.bin            the constants that the caller passes to the model
//
// All linker symbols and macros of a model begin with PREFIX, so that a program can contain several
// models.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/model_format.h"
#include "runtime/model_writer.h"

namespace tensorsmith::engine {

// kInvalidArgument unless `prefix` is a lower-case C name; macros use it in upper case.
Status check_c_prefix(const std::string& prefix);
// Checks before long work that sources may be written to `directory`: it must be missing or empty.
Status check_c_directory(const std::string& directory);

// Creates the directory if it is missing. `symbols` and `texts` list each kernel once. The weight
// offsets in `description` are ignored, as in runtime::write_model().
Status write_c_model(const std::string& directory, const std::string& prefix,
                     const runtime::ModelDescription& description, const std::vector<std::string>& symbols,
                     const std::vector<std::vector<char>>& texts,
                     const std::vector<runtime::WeightData>& weights);

}  // namespace tensorsmith::engine

// Parts of the file of Tensorsmith's own latency model that several of its objects have.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "feature/program_summary.h"
#include "learn/gbt/forest.h"
#include "learn/tensor_file.h"

namespace tensorsmith::learn {

Error corrupt_physics(const std::string& what);
// The functions that read JSON throw its exceptions.
// Reads the entry "structure"; kCorrupt if there is no such structure.
Result<feature::WorkloadStructure> structure_of(const nlohmann::json& item);
// Reads `count` finite numbers that are not negative from a JSON array.
Result<std::vector<double>> finite_numbers(const nlohmann::json& json, size_t count);

// The forests of a kind of programs are the tensors KIND.SORT0, KIND.SORT1 and so on
// (learn/gbt/forest_file.h).
std::string forest_name(feature::ProgramKind kind, const char* sort, size_t number);
void add_forests(TensorFile& file, feature::ProgramKind kind, const char* sort,
                 const std::vector<Forest>& forests);
Result<std::vector<Forest>> read_forests(const TensorFile& file, feature::ProgramKind kind, const char* sort,
                                         size_t count);

}  // namespace tensorsmith::learn

#include "learn/latency/tensorsmith_file.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "learn/gbt/forest_file.h"
#include "learn/latency/tensorsmith_rows.h"

namespace tensorsmith::learn {

Error corrupt_physics(const std::string& what) { return {ErrorCode::kCorrupt, "", "the model's " + what}; }

Result<feature::WorkloadStructure> structure_of(const nlohmann::json& item) {
  const int structure = item.at("structure");
  if (structure < 0 || structure >= feature::kWorkloadStructures)
    return corrupt_physics("physics is for a structure that does not exist");
  return static_cast<feature::WorkloadStructure>(structure);
}

Result<std::vector<double>> finite_numbers(const nlohmann::json& json, size_t count) {
  if (!json.is_array() || json.size() != count)
    return corrupt_physics("physics has a list of the wrong length");
  std::vector<double> out;
  for (const auto& item : json) {
    if (!item.is_number() || !std::isfinite(item.get<double>()) || item.get<double>() < 0)
      return corrupt_physics("physics contains a value that is not a finite number of at least 0");
    out.push_back(item.get<double>());
  }
  return out;
}

std::string forest_name(feature::ProgramKind kind, const char* sort, size_t number) {
  return std::string(to_string(kind)) + "." + sort + std::to_string(number);
}

void add_forests(TensorFile& file, feature::ProgramKind kind, const char* sort,
                 const std::vector<Forest>& forests) {
  for (size_t i = 0; i < forests.size(); ++i) add_forest(file, forest_name(kind, sort, i), forests[i]);
}

Result<std::vector<Forest>> read_forests(const TensorFile& file, feature::ProgramKind kind, const char* sort,
                                         size_t count) {
  std::vector<Forest> out;
  for (size_t i = 0; i < count; ++i) {
    TS_ASSIGN_OR_RETURN(Forest forest, read_forest(file, forest_name(kind, sort, i), tree_row_width(kind)));
    out.push_back(std::move(forest));
  }
  return out;
}

}  // namespace tensorsmith::learn

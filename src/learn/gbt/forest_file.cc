#include "learn/gbt/forest_file.h"

namespace tensorsmith::learn {

void add_forest(TensorFile& file, const std::string& name, const Forest& forest) {
  const Forest::Arrays arrays = forest.to_arrays();
  const auto nodes = std::ssize(arrays.number);
  file.add<int32_t>(name + ".sizes", {std::ssize(arrays.sizes)}, arrays.sizes);
  file.add<float>(name + ".number", {nodes}, arrays.number);
  file.add<uint16_t>(name + ".feature", {nodes}, arrays.feature);
  file.add<uint16_t>(name + ".left", {nodes}, arrays.left);
}

Result<Forest> read_forest(const TensorFile& file, const std::string& name, size_t width) {
  Forest::Arrays arrays;
  TS_ASSIGN_OR_RETURN(arrays.sizes, file.values<int32_t>(name + ".sizes", {-1}));
  TS_ASSIGN_OR_RETURN(arrays.number, file.values<float>(name + ".number", {-1}));
  TS_ASSIGN_OR_RETURN(arrays.feature, file.values<uint16_t>(name + ".feature", {-1}));
  TS_ASSIGN_OR_RETURN(arrays.left, file.values<uint16_t>(name + ".left", {-1}));
  return Forest::from_arrays(arrays, width);
}

}  // namespace tensorsmith::learn

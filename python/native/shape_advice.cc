#include "shape_advice.h"

#include <nlohmann/json.hpp>
#include <set>

namespace tensorsmith::python {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Formats a shape, for example "(1, 3, 224)".
std::string shape_of(const graph::OpenInput& input) {
  if (!input.shape) return input.is_sequence ? "(2, 3)" : "(1, 3, 224, 224)";
  std::string lengths;
  for (const graph::DeclaredDimension& dim : *input.shape)
    lengths += (lengths.empty() ? "" : ", ") + std::to_string(dim.length >= 0 ? dim.length : 1);
  return "(" + lengths + (input.shape->size() == 1 ? ",)" : ")");
}

}  // namespace

std::string shape_advice(std::span<const graph::OpenInput> inputs) {
  std::set<std::string> known;
  std::string dims, shapes, empty;
  bool all_named = true;
  for (const graph::OpenInput& input : inputs) {
    const std::string name = input.is_sequence ? input.name + "[0]" : input.name;
    shapes += (shapes.empty() ? "" : ", ") + quoted(name) + ": " + shape_of(input);
    if (input.is_sequence) empty += (empty.empty() ? "" : ", ") + quoted(input.name);
    if (!input.shape || input.is_sequence) all_named = false;
    for (const graph::DeclaredDimension& dim :
         input.shape.value_or(std::vector<graph::DeclaredDimension>())) {
      if (dim.length >= 0) continue;
      if (dim.name.empty()) all_named = false;
      if (dim.name.empty() || !known.insert(dim.name).second) continue;
      dims += (dims.empty() ? "" : ", ") + quoted(dim.name) + ": 1";
    }
  }
  std::string out = "choose their lengths, for instance ";
  if (all_named) out += "dims={" + dims + "} or ";
  out += "shapes={" + shapes + "}";
  if (!empty.empty()) out += ", or absent=[" + empty + "] for empty sequences";
  return out;
}

}  // namespace tensorsmith::python

#include "record/metaschedule/node_graph.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace tensorsmith::record {

namespace {

using Json = nlohmann::json;

Error bad_graph(const std::string& reason) {
  return Error{ErrorCode::kCorrupt, "", "the module is not a graph of TVM's nodes: " + reason};
}

// Returns the member, or null if `json` has none of this name.
const Json* member_of(const Json& json, const char* name) {
  const auto it = json.find(name);
  return it == json.end() ? nullptr : &*it;
}

Result<TvmNode> read_node(const Json& json, size_t number, size_t count) {
  const auto fail = [&](const char* what) { return bad_graph("node " + std::to_string(number) + what); };
  if (!json.is_object()) return fail(" is not an object");
  const Json* type = member_of(json, "type_key");
  if (type == nullptr || !type->is_string()) return fail(" has no \"type_key\"");
  TvmNode node;
  node.type = type->get<std::string>();
  if (const Json* text = member_of(json, "repr_str"); text != nullptr && text->is_string())
    node.text = text->get<std::string>();
  if (const Json* attributes = member_of(json, "attrs"); attributes != nullptr && attributes->is_object()) {
    for (const auto& [key, value] : attributes->items())
      node.attributes.emplace(key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  if (const Json* data = member_of(json, "data"); data != nullptr && data->is_array()) {
    for (const Json& element : *data) {
      if (!element.is_number_unsigned() || element.get<uint64_t>() >= count)
        return fail(" contains a node that does not exist");
      node.data.push_back(element.get<size_t>());
    }
  }
  return node;
}

}  // namespace

Result<NodeGraph> NodeGraph::parse(std::string_view text) {
  const Json json = parse_json<Json>(text);
  if (!json.is_object()) return bad_graph("not a JSON object");
  const Json* nodes = member_of(json, "nodes");
  const Json* root = member_of(json, "root");
  if (nodes == nullptr || !nodes->is_array() || root == nullptr || !root->is_number_unsigned())
    return bad_graph("\"nodes\" or \"root\" is missing; databases of TVM 0.13 to 0.19 have both");
  NodeGraph graph;
  graph.nodes.reserve(nodes->size());
  for (const Json& node : *nodes) {
    TS_ASSIGN_OR_RETURN(TvmNode read, read_node(node, graph.nodes.size(), nodes->size()));
    graph.nodes.push_back(std::move(read));
  }
  if (root->get<uint64_t>() >= graph.nodes.size()) return bad_graph("the root does not exist");
  graph.root = root->get<size_t>();
  return graph;
}

}  // namespace tensorsmith::record

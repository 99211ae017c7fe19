#include "record/metaschedule/node_graph.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json_text.h"

namespace tensorsmith::record {

namespace {

using Json = nlohmann::json;

Error bad_graph(const std::string& reason) {
  return Error{ErrorCode::kCorrupt, "", "the module is not a graph of TVM's nodes: " + reason};
}

// Quotes Infinity, -Infinity and NaN, which TVM writes as Python does and JSON lacks.
std::string with_quoted_numbers(std::string_view json) {
  constexpr std::array<std::string_view, 3> kWords = {"-Infinity", "Infinity", "NaN"};
  std::string out;
  out.reserve(json.size());
  bool quoted = false;
  while (!json.empty()) {
    const auto word = std::find_if(kWords.begin(), kWords.end(),
                                   [&](std::string_view w) { return !quoted && json.starts_with(w); });
    if (word != kWords.end()) {
      out += '"' + std::string(*word) + '"';
      json.remove_prefix(word->size());
      continue;
    }
    const size_t letters = quoted && json.front() == '\\' && json.size() > 1 ? 2 : 1;
    if (json.front() == '"') quoted = !quoted;
    out += json.substr(0, letters);
    json.remove_prefix(letters);
  }
  return out;
}

// Returns the member, or null if `json` has none of this name.
const Json* member_of(const Json& json, const char* name) {
  const auto it = json.find(name);
  return it == json.end() ? nullptr : &*it;
}

Status read_elements(const Json& array, size_t number, size_t count, TvmNode& node) {
  for (const Json& element : array) {
    if (!element.is_number_unsigned() || element.get<uint64_t>() >= count)
      return bad_graph("node " + std::to_string(number) + " contains a node that does not exist");
    node.data.push_back(element.get<size_t>());
  }
  return {};
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
    TS_RETURN_IF_ERROR(read_elements(*data, number, count, node));
  }
  return node;
}

using Renamed = std::pair<std::string_view, std::string_view>;  // the name in TVM 0.25 to 0.27, then in 0.19

constexpr std::array<Renamed, 10> kRenamedTypes = {{
    {"None", ""},
    {"ffi.Array", "Array"},
    {"ffi.Map", "Map"},
    {"ffi.String", "runtime.String"},
    {"ir.Op", "Op"},
    {"ir.IRModule", "IRModule"},
    {"ir.IntImm", "IntImm"},
    {"ir.FloatImm", "FloatImm"},
    {"ir.TensorLoad", "tir.BufferLoad"},
    {"ir.Call", "tir.Call"},
}};
// The first prefix that fits counts.
constexpr std::array<Renamed, 6> kRenamedPrefixes = {{
    {"tirx.SBlock", "tir.Block"},
    {"s_tir.SBlock", "tir.Block"},
    {"tirx.", "tir."},
    {"s_tir.", "tir."},
    {"ir.prim.", "tir."},
    {"prim.", "tir."},
}};

std::string name_in_0_19(std::string_view name) {
  for (const auto& [now, before] : kRenamedTypes) {
    if (name == now) return std::string(before);
  }
  for (const auto& [now, before] : kRenamedPrefixes) {
    if (name.starts_with(now)) return std::string(before) + std::string(name.substr(now.size()));
  }
  return std::string(name);
}

std::string scalar_text(const Json& json) {
  if (json.is_boolean()) return json.get<bool>() ? "1" : "0";
  return json.is_string() ? json.get<std::string>() : json.dump();
}

// Reads a node as TVM 0.25 and later write it.
Result<TvmNode> read_new_node(const Json& json, size_t number, size_t count) {
  const Json* type = json.is_object() ? member_of(json, "type") : nullptr;
  if (type == nullptr || !type->is_string())
    return bad_graph("node " + std::to_string(number) + " has no \"type\"");
  TvmNode node;
  node.type = name_in_0_19(type->get_ref<const std::string&>());
  const Json* data = member_of(json, "data");
  if (data == nullptr) return node;
  if (data->is_array()) {
    TS_RETURN_IF_ERROR(read_elements(*data, number, count, node));
  } else if (data->is_object()) {
    for (const auto& [key, value] : data->items()) node.attributes.emplace(key, scalar_text(value));
  } else {
    node.text = scalar_text(*data);
    if (node.type == "Op") node.text = name_in_0_19(node.text);
  }
  return node;
}

// Gives nodes of TVM 0.25 and later the attributes that TVM 0.19 wrote.
class OldAttributes {
 public:
  explicit OldAttributes(NodeGraph& graph) : graph_(graph), numbers_are_nodes_(all_numbers_are_nodes()) {}

  void restore() {
    const size_t count = graph_.nodes.size();
    for (size_t n = 0; n < count; ++n) restore_types(n);
    for (size_t n = 0; n < count; ++n) {
      if (graph_.nodes[n].type == "tir.PrimFunc" && !graph_.nodes[n].attributes.contains("buffer_map"))
        add_buffer_map(n);
    }
  }

 private:
  const std::string* attribute(size_t node, std::string_view name) const {
    const auto& attributes = graph_.nodes[node].attributes;
    const auto it = attributes.find(name);
    return it == attributes.end() ? nullptr : &it->second;
  }

  // Returns the node that the attribute names; none if it names none.
  std::optional<size_t> named(size_t node, std::string_view name) const {
    const std::string* digits = attribute(node, name);
    if (digits == nullptr) return std::nullopt;
    size_t number = 0;
    const auto [end, code] = std::from_chars(digits->data(), digits->data() + digits->size(), number);
    const bool whole = code == std::errc() && end == digits->data() + digits->size();
    return whole && number < graph_.nodes.size() ? std::optional(number) : std::nullopt;
  }

  // TVM 0.27 writes the value of a constant as the number of a node, TVM 0.25 and 0.26 write the value.
  bool all_numbers_are_nodes() const {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].type != "IntImm") continue;
      const auto value = named(n, "value");
      if (!value || (graph_.nodes[*value].type != "int" && graph_.nodes[*value].type != "bool")) return false;
    }
    return true;
  }

  void restore_types(size_t n) {
    TvmNode& node = graph_.nodes[n];
    if (node.type == "IntImm" && numbers_are_nodes_)
      node.attributes["value"] = graph_.nodes[*named(n, "value")].text;
    if (const std::string* source = attribute(n, "source");
        source != nullptr && node.type == "tir.BufferLoad")
      node.attributes["buffer"] = *source;
    const auto type = named(n, "ty");
    if (!type) return;
    if (node.type == "ir.Var") {
      node.type = graph_.nodes[*type].type == "tir.BufferType" ? "tir.Buffer" : "tir.Var";
      if (const std::string* shape = attribute(*type, "shape")) node.attributes["shape"] = *shape;
    }
    // The type of a tensor names that of its elements.
    const auto element = graph_.nodes[*type].type == "tir.BufferType" ? named(*type, "dtype") : type;
    if (!element || graph_.nodes[*element].type != "ir.PrimType") return;
    if (const std::string* name = attribute(*element, "dtype")) node.attributes["dtype"] = *name;
  }

  // From TVM 0.26 on, tensors are parameters themselves.
  void add_buffer_map(size_t function) {
    const auto parameters = named(function, "params");
    if (!parameters) return;
    TvmNode map;
    map.type = "Map";
    for (const size_t parameter : graph_.nodes[*parameters].data) {
      if (graph_.nodes[parameter].type == "tir.Buffer") map.data.insert(map.data.end(), 2, parameter);
    }
    graph_.nodes[function].attributes["buffer_map"] = std::to_string(graph_.nodes.size());
    graph_.nodes.push_back(std::move(map));
  }

  NodeGraph& graph_;
  bool numbers_are_nodes_;
};

}  // namespace

Result<NodeGraph> NodeGraph::parse(std::string_view text) {
  const Json json = parse_json<Json>(with_quoted_numbers(text));
  if (!json.is_object()) return bad_graph("not a JSON object");
  const Json* nodes = member_of(json, "nodes");
  const Json* new_root = member_of(json, "root_index");
  const Json* root = new_root != nullptr ? new_root : member_of(json, "root");
  if (nodes == nullptr || !nodes->is_array() || root == nullptr || !root->is_number_unsigned())
    return bad_graph(
        "\"nodes\" or its root is missing; databases of TVM 0.13 to 0.19 and of 0.25 to 0.27 have both");
  NodeGraph graph;
  graph.nodes.reserve(nodes->size());
  for (const Json& node : *nodes) {
    const auto read_one = new_root != nullptr ? read_new_node : read_node;
    TS_ASSIGN_OR_RETURN(TvmNode read, read_one(node, graph.nodes.size(), nodes->size()));
    graph.nodes.push_back(std::move(read));
  }
  if (root->get<uint64_t>() >= graph.nodes.size()) return bad_graph("the root does not exist");
  graph.root = root->get<size_t>();
  if (new_root != nullptr) OldAttributes(graph).restore();
  return graph;
}

}  // namespace tensorsmith::record

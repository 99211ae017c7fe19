#include "record/metaschedule/node_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tensorsmith::record {

namespace {

std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string node_text(std::string_view type, std::string_view data) {
  return R"({"type":")" + std::string(type) + R"(","data":)" + std::string(data) + "}";
}

std::string object_text(std::initializer_list<NodeWriter::Member> members) {
  std::string out;
  for (const auto& [name, value] : members) {
    out += out.empty() ? "{" : ",";
    out += '"' + std::string(name) + "\":" + std::to_string(value);
  }
  return out + "}";
}

std::string list_text(const std::vector<size_t>& elements) {
  std::string out = "[";
  for (const size_t element : elements) {
    if (out.size() > 1) out += ',';
    out += std::to_string(element);
  }
  return out + "]";
}

std::string float_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  std::array<char, 32> digits;
  std::string out(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  // A number without point or exponent would be read as an integer.
  return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

}  // namespace

NodeWriter::NodeWriter() : nodes_{R"({"type":"None"})"} {}

size_t NodeWriter::add(std::string node) {
  nodes_.push_back(std::move(node));
  return nodes_.size() - 1;
}

size_t NodeWriter::shared(std::string node) {
  if (const auto found = known_.find(node); found != known_.end()) return found->second;
  const size_t made = add(node);
  known_.emplace(std::move(node), made);
  return made;
}

size_t NodeWriter::node(std::string_view type, std::initializer_list<Member> members) {
  return shared(node_text(type, object_text(members)));
}
size_t NodeWriter::new_node(std::string_view type, std::initializer_list<Member> members) {
  return add(node_text(type, object_text(members)));
}
size_t NodeWriter::array(const std::vector<size_t>& elements) {
  return shared(node_text("ffi.Array", list_text(elements)));
}
size_t NodeWriter::map(const std::vector<size_t>& keys_and_values) {
  return shared(node_text("ffi.Map", list_text(keys_and_values)));
}
size_t NodeWriter::text(std::string_view value) { return shared(node_text("ffi.String", quoted(value))); }
size_t NodeWriter::boolean(bool value) { return shared(node_text("bool", value ? "true" : "false")); }
size_t NodeWriter::op(std::string_view name) { return shared(node_text("ir.Op", quoted(name))); }

size_t NodeWriter::type(ir::DType dtype) {
  return shared(node_text("ir.PrimType", R"({"span":0,"dtype":)" + quoted(row_of(dtype).name) + "}"));
}

size_t NodeWriter::integer(ir::DType dtype, int64_t value) {
  const size_t digits = shared(node_text("int", std::to_string(value)));
  return node("ir.IntImm", {{"span", 0}, {"ty", type(dtype)}, {"value", digits}});
}

size_t NodeWriter::number(ir::DType dtype, double value) {
  return shared(node_text("ir.FloatImm", R"({"span":0,"ty":)" + std::to_string(type(dtype)) + R"(,"value":)" +
                                             float_text(value) + "}"));
}

size_t NodeWriter::function_type(const std::vector<size_t>& parameters, size_t result) {
  return shared(node_text("relax.FuncType", R"({"span":0,"params":)" + std::to_string(array(parameters)) +
                                                R"(,"ret":)" + std::to_string(result) +
                                                R"(,"derive_func":0,"purity":false})"));
}

std::string NodeWriter::json(size_t root) const {
  std::string out = R"({"root_index":)" + std::to_string(root) + R"(,"nodes":[)";
  for (size_t i = 0; i < nodes_.size(); ++i) out += (i > 0 ? "," : "") + nodes_[i];
  return out + R"(],"metadata":{"tvm_version":"0.27.0"}})";
}

}  // namespace tensorsmith::record

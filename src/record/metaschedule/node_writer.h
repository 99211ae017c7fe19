// Builds a graph of nodes as TVM 0.27 writes and reads it: the inverse of NodeGraph::parse().
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/dtype.h"

namespace tensorsmith::record {

class NodeWriter {
 public:
  // A member of a node's data: a number, which may be that of another node.
  using Member = std::pair<std::string_view, size_t>;

  NodeWriter();  // node 0 is null

  // Returns a node with these members, the same one for the same members.
  size_t node(std::string_view type, std::initializer_list<Member> members);
  // Returns a new node. Variables are equal only if they are the same node.
  size_t new_node(std::string_view type, std::initializer_list<Member> members);
  size_t array(const std::vector<size_t>& elements);
  size_t map(const std::vector<size_t>& keys_and_values);
  size_t text(std::string_view value);
  size_t boolean(bool value);
  size_t op(std::string_view name);                // a function, for example "tirx.exp"
  size_t type(ir::DType dtype);                    // of scalars
  size_t integer(ir::DType dtype, int64_t value);  // a constant; also of bool
  // A constant of a float type; infinities and NaN are written as in Python's JSON.
  size_t number(ir::DType dtype, double value);

  // The type of a function of Relax that changes its arguments.
  size_t function_type(const std::vector<size_t>& parameters, size_t result);

  // Returns the text of the graph.
  std::string json(size_t root) const;

 private:
  size_t shared(std::string node);  // `node` is its JSON text
  size_t add(std::string node);

  std::vector<std::string> nodes_;
  std::unordered_map<std::string, size_t> known_;
};

}  // namespace tensorsmith::record

// The graph of nodes as which TVM writes an object, here the module of a workload:
//   {"root": 1, "nodes": [{"type_key": ""}, {"type_key": "tir.For", "attrs": {"body": "35", "kind": "0"}},
//                         {"type_key": "Array", "data": [3, 5]},
//                         {"type_key": "runtime.String", "repr_str": "i"}]}
// Attributes are text; where they name another node, they are its number. Node 0 is null.
// TVM 0.25 and later write other names: {"root_index": 1, "nodes": [{"type": "tirx.For", "data": {"body": 35}}]}.
// parse() translates these, so that readers only see the names of TVM 0.19.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensorsmith::record {

struct TvmNode {
  std::string type;
  std::map<std::string, std::string, std::less<>> attributes;
  std::vector<size_t> data;  // elements of an Array; keys and values of a Map in turn, or values alone
  std::string text;          // of a String; the name of an Op; digits of a number that is a node
};

struct NodeGraph {
  std::vector<TvmNode> nodes;
  size_t root = 0;

  // Errors: kCorrupt for text that is no such graph. Numbers in `data` and `root` are below the
  // number of nodes afterwards; those in attributes have to be checked by who reads them.
  static Result<NodeGraph> parse(std::string_view json);
};

}  // namespace tensorsmith::record

// Reads the workload of a module of TVM's TIR that MetaSchedule has stored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/workload.h"

namespace tensorsmith::record {

struct TirBlock {
  std::string name;  // as instructions name it: "conv2d_nchw"
  ir::Buffer output;
};

struct TirModule {
  ir::Workload workload;         // its operations are named like the blocks
  std::vector<TirBlock> blocks;  // in the order in which they run
};

// Reads the node graph of a module with one function, "main". Each block must have a loop for each
// axis and write one element, as the operators of Relay and Relax that TVM writes as tensor
// expressions. Errors: kCorrupt for damaged graphs, kUnsupported for other statements, expressions
// and types; the place is "node N (tir.For)". Never crashes.
Result<TirModule> read_tir_module(std::string_view json);

}  // namespace tensorsmith::record

#include "record/metaschedule/tir_module.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "ir/structural.h"
#include "record/metaschedule/tir_reader.h"

namespace tensorsmith::record {

namespace {

using ir::Expr;

constexpr std::string_view kSpatialAxis = "0", kReduceAxis = "2";  // IterVarType of TVM

class ModuleReader {
 public:
  explicit ModuleReader(NodeGraph graph) : tir_(std::move(graph)) {}

  Result<TirModule> run() {
    read_function(main_function());
    if (tir_.failed()) return tir_.take_error();
    TS_RETURN_IF_ERROR(ir::verify(module_.workload));
    return std::move(module_);
  }

 private:
  struct Nest {
    std::vector<size_t> loops;  // For nodes, outer to inner
    size_t realize = 0, block = 0;
  };

  size_t main_function() {
    tir_.expect(tir_.root(), "IRModule");
    const size_t functions = tir_.child(tir_.root(), "functions");
    const std::vector<size_t>& data = tir_.at(functions).data;  // keys and values in turn
    for (size_t i = 0; i + 1 < data.size(); i += 2) {
      if (!tir_.is(data[i + 1], "tir.PrimFunc")) continue;
      if (data.size() == 2 || tir_.name(data[i], "name_hint") == "main") return data[i + 1];
    }
    tir_.fail(functions, ErrorCode::kUnsupported, "the module has no function \"main\"");
    return 0;
  }

  void read_function(size_t function) {
    if (tir_.failed()) return;
    std::vector<Nest> nests;
    const size_t realize = tir_.child(function, "body");
    tir_.expect(realize, "tir.BlockRealize");
    const size_t root = tir_.child(realize, "block");
    if (tir_.failed()) return;
    collect(tir_.child(root, "body"), nests);
    std::set<size_t> written;
    for (const Nest& nest : nests) written.insert(store_of(tir_.child(nest.block, "body")).buffer);
    if (tir_.failed()) return;
    std::vector<size_t> outputs;
    for (const size_t buffer : parameters(function)) {
      if (written.contains(buffer)) {
        outputs.push_back(buffer);
        continue;
      }
      const ir::Buffer& shown = tir_.buffer(buffer);
      if (tir_.failed()) return;
      auto op = ir::placeholder(unique(shown->name), shown->dtype, shown->shape);
      tir_.define_buffer(buffer, op->output());
      module_.workload.operations.push_back(std::move(op));
    }
    for (const Nest& nest : nests) {
      read_block(nest);
      if (tir_.failed()) return;
    }
    for (const size_t buffer : outputs) module_.workload.outputs.push_back(tir_.buffer(buffer));
    if (outputs.empty()) tir_.fail(function, ErrorCode::kUnsupported, "the function writes no parameter");
  }

  // Returns the Buffer nodes of the function's parameters, in their order.
  std::vector<size_t> parameters(size_t function) {
    std::vector<size_t> out;
    const size_t map = tir_.child(function, "buffer_map");
    for (const size_t parameter : tir_.list(function, "params")) {
      const std::vector<size_t>& data = tir_.at(map).data;
      for (size_t i = 0; i + 1 < data.size(); i += 2) {
        if (data[i] == parameter) out.push_back(data[i + 1]);
      }
    }
    return out;
  }

  // Adds the loop nests of the statements below a node.
  void collect(size_t node, std::vector<Nest>& nests) {
    if (tir_.failed()) return;
    if (tir_.is(node, "tir.SeqStmt")) {
      for (const size_t statement : tir_.list(node, "seq")) {
        if (tir_.is(statement, "tir.SeqStmt"))
          return tir_.fail(statement, ErrorCode::kUnsupported, "a sequence inside a sequence");
        collect(statement, nests);
      }
      return;
    }
    Nest nest;
    for (; tir_.is(node, "tir.For") && !tir_.failed(); node = tir_.child(node, "body")) {
      if (nest.loops.size() > 32) return tir_.fail(node, ErrorCode::kUnsupported, "too many nested loops");
      nest.loops.push_back(node);
    }
    tir_.expect(node, "tir.BlockRealize");
    nest.realize = node;
    nest.block = tir_.child(node, "block");
    tir_.expect(nest.block, "tir.Block");
    if (!tir_.failed()) nests.push_back(std::move(nest));
  }

  struct Store {
    size_t node = 0, buffer = 0;
  };
  Store store_of(size_t node) {
    tir_.expect(node, "tir.BufferStore");
    return {node, tir_.child(node, "buffer")};
  }

  std::string unique(const std::string& wanted) {
    std::string name = wanted.empty() ? "tensor" : wanted;
    for (int i = 1; !names_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
    return name;
  }

  struct Axes {
    std::vector<ir::Axis> spatial, reduce;
  };
  // Reads the axes of a block, each of which must be a loop around it, in the same order.
  Axes axes_of(const Nest& nest) {
    Axes axes;
    const std::vector<size_t>& variables = tir_.list(nest.block, "iter_vars");
    const std::vector<size_t>& values = tir_.list(nest.realize, "iter_values");
    if (variables.size() != nest.loops.size() || values.size() != variables.size()) {
      tir_.fail(nest.block, ErrorCode::kUnsupported, "the block does not have a loop for each axis");
      return axes;
    }
    for (size_t i = 0; i < variables.size() && !tir_.failed(); ++i) {
      const size_t range = tir_.child(variables[i], "dom");
      const int64_t extent = tir_.constant(tir_.child(range, "extent"));
      const std::string& kind = tir_.text(variables[i], "iter_type");
      const bool plain = tir_.child(nest.loops[i], "loop_var") == values[i] &&
                         tir_.text(nest.loops[i], "kind") == "0" &&
                         tir_.constant(tir_.child(range, "min")) == 0 &&
                         tir_.constant(tir_.child(nest.loops[i], "min")) == 0 &&
                         tir_.constant(tir_.child(nest.loops[i], "extent")) == extent && extent > 0;
      const bool in_order = kind == kReduceAxis || (kind == kSpatialAxis && axes.reduce.empty());
      if (!plain || !in_order)
        tir_.fail(variables[i], ErrorCode::kUnsupported,
                  "the axis is not a whole serial loop, or follows one that is summed over");
      (kind == kSpatialAxis ? axes.spatial : axes.reduce)
          .push_back({tir_.variable(tir_.child(variables[i], "var")), extent});
    }
    return axes;
  }

  void read_block(const Nest& nest) {
    const size_t predicate = tir_.child(nest.realize, "predicate");
    if (tir_.constant(predicate) == 0 || !tir_.list(nest.block, "match_buffers").empty())
      return tir_.fail(nest.block, ErrorCode::kUnsupported, "the block has a condition or parts of tensors");
    const std::string name = tir_.name(nest.block, "name_hint");
    Axes axes = axes_of(nest);
    const Store store = store_of(tir_.child(nest.block, "body"));
    if (tir_.failed()) return;
    const ir::Buffer shown = tir_.buffer(store.buffer);
    check_indices(store, axes.spatial, shown);
    if (!defined_.insert(store.buffer).second)
      tir_.fail(store.node, ErrorCode::kUnsupported, "the tensor is written by two blocks");
    const size_t value = tir_.child(store.node, "value");
    ir::Combiner combiner = ir::Combiner::kNone;
    Expr body;
    if (axes.reduce.empty()) {
      body = tir_.expression(value);
    } else {
      combiner = read_reduction(nest.block, store, value, body);
    }
    if (tir_.failed()) return;
    if (body.dtype() != shown->dtype) body = ir::cast(shown->dtype, body);
    auto op = ir::compute(unique(name), std::move(axes.spatial), std::move(axes.reduce), combiner,
                          {std::move(body)});
    tir_.define_buffer(store.buffer, op->output());
    module_.blocks.push_back({name, op->output()});
    module_.workload.operations.push_back(std::move(op));
  }

  // Checks that the block writes the element of its spatial axes.
  void check_indices(const Store& store, const std::vector<ir::Axis>& spatial, const ir::Buffer& written) {
    const std::vector<Expr> indices = tir_.expressions(tir_.list(store.node, "indices"));
    bool same = indices.size() == spatial.size() && written->shape.size() == spatial.size();
    for (size_t d = 0; same && !tir_.failed() && d < spatial.size(); ++d) {
      const auto* variable = ir::as<ir::VarRef>(indices[d]);
      same = variable != nullptr && variable->var == spatial[d].var && written->shape[d] == spatial[d].extent;
    }
    if (!same)
      tir_.fail(store.node, ErrorCode::kUnsupported,
                "the block does not write one element for each point of its axes");
  }

  // Finds the combiner of `sum = sum + x`, and sets `body` to x. The start must be neutral.
  ir::Combiner read_reduction(size_t block, const Store& store, size_t value, Expr& body) {
    using enum ir::Combiner;
    constexpr std::array<std::pair<std::string_view, ir::Combiner>, 4> kRows = {
        {{"tir.Add", kSum}, {"tir.Mul", kProd}, {"tir.Max", kMax}, {"tir.Min", kMin}}};
    const auto row =
        std::find_if(kRows.begin(), kRows.end(), [&](const auto& r) { return tir_.is(value, r.first); });
    const size_t init = tir_.child(block, "init");
    if (row == kRows.end() || tir_.at(init).type.empty()) {
      tir_.fail(value, ErrorCode::kUnsupported, "only sums, products, minima and maxima are supported");
      return kNone;
    }
    size_t operands[] = {tir_.child(value, "a"), tir_.child(value, "b")};
    if (!is_accumulator(operands[0], store)) std::swap(operands[0], operands[1]);
    const Store start = store_of(init);
    const Expr neutral = tir_.expression(tir_.child(start.node, "value"));
    if (tir_.failed()) return kNone;
    if (!is_accumulator(operands[0], store) || start.buffer != store.buffer ||
        !is_neutral(row->second, neutral)) {
      tir_.fail(value, ErrorCode::kUnsupported, "the reduction does not start from its neutral element");
      return kNone;
    }
    body = tir_.expression(operands[1]);
    return row->second;
  }

  bool is_accumulator(size_t node, const Store& store) {
    if (!tir_.is(node, "tir.BufferLoad") || tir_.child(node, "buffer") != store.buffer) return false;
    return ir::structural_equal(tir_.expressions(tir_.list(node, "indices")),
                                tir_.expressions(tir_.list(store.node, "indices")));
  }

  static bool is_neutral(ir::Combiner combiner, const Expr& start) {
    const auto* imm = ir::as<ir::FloatImm>(start);
    const auto integer = ir::as_int(start);
    if (imm == nullptr && !integer) return false;
    const double value = imm != nullptr ? imm->value : static_cast<double>(*integer);
    switch (combiner) {
      case ir::Combiner::kSum:
        return value == 0;
      case ir::Combiner::kProd:
        return value == 1;
      // TVM starts from the lowest or highest finite number of the type.
      case ir::Combiner::kMax:
        return value < 0 && (integer || value <= -65504);
      case ir::Combiner::kMin:
        return value > 0 && (integer || value >= 65504);
      case ir::Combiner::kNone:
      case ir::Combiner::kArgMax:
      case ir::Combiner::kArgMin:
        return false;
    }
    return false;
  }

  TirReader tir_;
  TirModule module_;
  std::set<std::string> names_;
  std::set<size_t> defined_;
};

}  // namespace

Result<TirModule> read_tir_module(std::string_view json) {
  TS_ASSIGN_OR_RETURN(NodeGraph graph, NodeGraph::parse(json));
  return ModuleReader(std::move(graph)).run();
}

}  // namespace tensorsmith::record

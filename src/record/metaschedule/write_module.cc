#include "record/metaschedule/write_module.h"

#include <algorithm>
#include <set>

#include "ir/analysis.h"
#include "record/metaschedule/tir_writer.h"
#include "sched/reads.h"

namespace tensorsmith::record {

namespace {

using ir::DType;

constexpr size_t kDataParallel = 0, kCommutativeReduce = 2;  // IterVarType of TVM

// Returns the number from which TVM starts a reduction. For maxima and minima, that is the lowest
// or highest finite number; RFactor recognizes no other.
double tvm_identity(ir::Combiner combiner, DType dtype) {
  const double highest = dtype == DType::kF16    ? 65504
                         : dtype == DType::kBF16 ? 0x1.FEp127
                         : dtype == DType::kF32  ? 0x1.FFFFFEp127
                                                 : 0x1.FFFFFFFFFFFFFp1023;
  switch (combiner) {
    case ir::Combiner::kProd:
      return 1;
    case ir::Combiner::kMax:
      return -highest;
    case ir::Combiner::kMin:
      return highest;
    default:
      return 0;
  }
}

std::string_view combining_operator(ir::Combiner combiner) {
  switch (combiner) {
    case ir::Combiner::kProd:
      return "prim.Mul";
    case ir::Combiner::kMax:
      return "prim.Max";
    case ir::Combiner::kMin:
      return "prim.Min";
    default:
      return "prim.Add";
  }
}

class TirModuleWriter {
 public:
  explicit TirModuleWriter(const ir::Workload& workload) : workload_(workload) {}

  Result<std::string> run() {
    for (const auto& op : workload_.operations) check(*op);
    for (const ir::Buffer& output : workload_.outputs) {
      if (!outputs_.insert(output.get()).second) tir_.fail("an output that occurs twice is not supported");
    }
    if (tir_.failed()) return tir_.take_error();
    const size_t function = main_function();
    if (tir_.failed()) return tir_.take_error();
    const size_t name = n_.text("main");
    const size_t variable = n_.node(
        "ir.GlobalVar", {{"span", 0}, {"ty", n_.node("ir.Type", {{"span", 0}})}, {"name_hint", name}});
    const size_t no_map = n_.map({});
    const size_t module =
        n_.node("ir.IRModule", {{"functions", n_.map({variable, function})},
                                {"global_var_map_", n_.map({name, variable})},
                                {"source_map", n_.node("ir.SourceMap", {{"source_map", no_map}})},
                                {"attrs", attributes(no_map)},
                                {"global_infos", no_map}});
    return n_.json(module);
  }

 private:
  void check(const ir::Operation& op) {
    tir_.begin(op.name);
    if (op.outputs.size() != 1) tir_.fail("a reduction of two values cannot be written in TVM's format");
    for (const ir::Buffer& output : workload_.outputs) {
      if (op.is_placeholder() && output == op.output())
        tir_.fail("an input that is an output cannot be written in TVM's format");
    }
    if (op.name == "root") tir_.fail("TVM's format keeps the name 'root' for a block of its own");
  }

  size_t attributes(size_t map) { return n_.node("ir.DictAttrs", {{"__dict__", map}}); }

  size_t main_function() {
    std::vector<size_t> parameters, types, intermediates;
    const auto add_parameter = [&](const ir::BufferNode& buffer) {
      parameters.push_back(tir_.define_tensor(buffer));
      types.push_back(tensor_type(buffer));
    };
    for (const auto& op : workload_.operations) {
      if (op->is_placeholder()) add_parameter(*op->output());
    }
    for (const ir::Buffer& output : workload_.outputs) add_parameter(*output);
    for (const auto& op : workload_.operations) {
      if (!op->is_placeholder() && !outputs_.contains(op->output().get()))
        intermediates.push_back(tir_.define_tensor(*op->output()));
    }
    std::vector<size_t> statements;
    for (const auto& op : workload_.operations) {
      if (!op->is_placeholder()) statements.push_back(nest(*op));
    }
    if (tir_.failed()) return 0;
    const size_t body = statements.size() == 1
                            ? statements.front()
                            : n_.node("tirx.SeqStmt", {{"span", 0}, {"seq", n_.array(statements)}});
    const size_t root = realize({}, block("root", {}, {}, {}, intermediates, 0, body));
    const size_t nothing = n_.node("ir.TupleType", {{"span", 0}, {"fields", n_.array({})}});
    // A function of Relax that changes its arguments and returns nothing.
    const size_t type = n_.function_type(types, nothing);
    const size_t yes = n_.boolean(true);
    const size_t notes = n_.map(
        {n_.text("global_symbol"), n_.text("main"), n_.text("tirx.noalias"), yes, n_.text("s_tir"), yes});
    return n_.node("tirx.PrimFunc", {{"span", 0},
                                     {"ty", type},
                                     {"attrs", attributes(notes)},
                                     {"params", n_.array(parameters)},
                                     {"ret_type", nothing},
                                     {"body", root}});
  }

  size_t tensor_type(const ir::BufferNode& buffer) {
    std::vector<size_t> extents;
    for (const int64_t extent : buffer.shape) extents.push_back(tir_.index(extent));
    const size_t values = n_.array(extents), rank = extents.size();
    const size_t shape_type = n_.node("relax.ShapeType", {{"span", 0}, {"values", values}, {"ndim", rank}});
    const size_t shape =
        n_.node("relax.expr.ShapeExpr", {{"span", 0}, {"ty", shape_type}, {"values", values}});
    return n_.node(
        "relax.TensorType",
        {{"span", 0}, {"shape", shape}, {"dtype", n_.type(buffer.dtype)}, {"vdevice", 0}, {"ndim", rank}});
  }

  size_t block(std::string_view name, const std::vector<size_t>& axes, const std::vector<size_t>& reads,
               const std::vector<size_t>& writes, const std::vector<size_t>& allocated, size_t init,
               size_t body) {
    return n_.node("s_tir.SBlock", {{"span", 0},
                                    {"iter_vars", n_.array(axes)},
                                    {"reads", n_.array(reads)},
                                    {"writes", n_.array(writes)},
                                    {"name_hint", n_.text(name)},
                                    {"alloc_buffers", n_.array(allocated)},
                                    {"match_buffers", n_.array({})},
                                    {"annotations", n_.map({})},
                                    {"init", init},
                                    {"body", body}});
  }

  size_t realize(const std::vector<size_t>& values, size_t block) {
    return n_.node("s_tir.SBlockRealize", {{"span", 0},
                                           {"iter_values", n_.array(values)},
                                           {"predicate", n_.integer(DType::kBool, 1)},
                                           {"block", block}});
  }

  // Returns the block of the operation inside a loop for each axis.
  size_t nest(const ir::Operation& op) {
    tir_.begin(op.name);
    std::vector<size_t> variables, axes, indices;
    std::vector<int64_t> extents;
    const auto add_axis = [&](const ir::Axis& axis, size_t kind) {
      variables.push_back(tir_.new_variable(axis.var.name()));
      extents.push_back(axis.extent);
      const size_t value = tir_.new_variable("v_" + axis.var.name());
      tir_.define_axis(axis.var, value);
      axes.push_back(n_.node("tirx.IterVar", {{"dom", tir_.range(tir_.index(0), tir_.index(axis.extent))},
                                              {"var", value},
                                              {"iter_type", kind},
                                              {"thread_tag", n_.text("")},
                                              {"span", 0}}));
      if (kind == kDataParallel) indices.push_back(value);
    };
    for (const ir::Axis& axis : op.spatial) add_axis(axis, kDataParallel);
    for (const ir::Axis& axis : op.reduce) add_axis(axis, kCommutativeReduce);
    const DType dtype = op.output()->dtype;
    const size_t place = n_.array(indices);
    size_t value = tir_.expression(op.bodies.front()), init = 0;
    if (tir_.failed()) return 0;
    if (op.has_reduction()) {
      value = n_.node(
          combining_operator(op.combiner),
          {{"span", 0}, {"ty", n_.type(dtype)}, {"a", tir_.load(op.output().get(), place)}, {"b", value}});
      init = store(op, start_of(op.combiner, dtype), place);
    }
    const size_t body = store(op, value, place);
    std::vector<size_t> reads = regions_read(op);
    const size_t written = region(op.output().get(), points(indices));
    size_t statement = realize(variables, block(op.name, axes, reads, {written}, {}, init, body));
    for (size_t loop = variables.size(); loop-- > 0;)
      statement = n_.node("tirx.For", {{"span", 0},
                                       {"loop_var", variables[loop]},
                                       {"min", tir_.index(0)},
                                       {"extent", tir_.index(extents[loop])},
                                       {"kind", 0},
                                       {"body", statement},
                                       {"thread_binding", 0},
                                       {"annotations", n_.map({})},
                                       {"step", 0}});
    return statement;
  }

  size_t start_of(ir::Combiner combiner, DType dtype) {
    if (ir::is_float(dtype)) return n_.number(dtype, tvm_identity(combiner, dtype));
    return tir_.expression(ir::identity_of(combiner, dtype));
  }

  size_t store(const ir::Operation& op, size_t value, size_t place) {
    return n_.node(
        "tirx.BufferStore",
        {{"span", 0}, {"buffer", tir_.tensor(op.output().get())}, {"value", value}, {"indices", place}});
  }

  size_t region(const ir::BufferNode* buffer, const std::vector<size_t>& ranges) {
    return n_.node("ir.TensorRegion", {{"span", 0},
                                       {"ty", n_.node("tirx.BufferRegionType", {{"span", 0}})},
                                       {"source", tir_.tensor(buffer)},
                                       {"region", n_.array(ranges)}});
  }

  std::vector<size_t> points(const std::vector<size_t>& indices) {
    std::vector<size_t> out;
    for (const size_t index : indices) out.push_back(tir_.range(index, tir_.index(1)));
    return out;
  }

  // Returns a region for each tensor that the operation reads, in the order of their first loads.
  std::vector<size_t> regions_read(const ir::Operation& op) {
    std::vector<size_t> out;
    const sched::Reads reads(op);
    for (const sched::Reads::Tensor& tensor : reads.tensors()) {
      std::vector<size_t> ranges;
      for (size_t d = 0; d < tensor.buffer->shape.size(); ++d) ranges.push_back(range_read(reads, tensor, d));
      out.push_back(region(tensor.buffer, ranges));
    }
    return out;
  }

  // Returns what the loads read along a dimension: one element, a few neighbours, or all of it.
  size_t range_read(const sched::Reads& reads, const sched::Reads::Tensor& tensor, size_t dim) {
    const sched::Reads::Index* first = nullptr;
    int64_t lowest = 0, highest = 0;
    bool neighbours = true;
    for (const sched::Reads::Use& use : tensor.uses) {
      if (use.dim != dim) continue;
      const sched::Reads::Index& index = reads.indices()[use.index];
      if (first == nullptr) {
        first = &index;
        if (index.sum) lowest = highest = index.sum->constant;
        neighbours = ir::loads_of(*index.expr).empty();
        continue;
      }
      neighbours = neighbours && index.sum && first->sum && index.sum->terms == first->sum->terms;
      if (!neighbours) break;
      lowest = std::min(lowest, index.sum->constant);
      highest = std::max(highest, index.sum->constant);
    }
    if (first == nullptr || !neighbours)
      return tir_.range(tir_.index(0), tir_.index(tensor.buffer->shape[dim]));
    size_t start = tir_.expression(*first->expr);
    if (first->sum && first->sum->constant != lowest)
      start = n_.node("prim.Sub", {{"span", 0},
                                   {"ty", n_.type(DType::kI64)},
                                   {"a", start},
                                   {"b", tir_.index(first->sum->constant - lowest)}});
    return tir_.range(start, tir_.index(highest - lowest + 1));
  }

  const ir::Workload& workload_;
  TirWriter tir_;
  NodeWriter& n_ = tir_.nodes();
  std::set<const ir::BufferNode*> outputs_;
};

}  // namespace

Result<std::string> write_tir_module(const ir::Workload& workload) { return TirModuleWriter(workload).run(); }

}  // namespace tensorsmith::record

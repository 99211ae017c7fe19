#include "graph/emit.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "graph/ops/registry.h"
#include "ir/analysis.h"
#include "ir/scalar.h"

namespace tensorsmith::graph {

namespace {

// Makes an operator compute in f32 if its inputs are f16 or bf16, and rounds its results.
//   y = exp(x)                        =>    y = bf16(exp(f32(x)))
//   y = sum_k a[i, k] * b[k, j]       =>    s = sum_k f32(a[i, k]) * f32(b[k, j]); y = bf16(s)
// Stages that only move elements keep the short type.
class ShortFloats {
 public:
  ShortFloats(const OpEntry& entry, std::span<const ir::Buffer> inputs, WorkloadBuilder& builder)
      : given_(inputs), seen_(inputs.begin(), inputs.end()), builder_(builder) {
    // Operators with other signatures only move elements.
    if (std::string_view("fno").find(entry.signature[0]) == std::string_view::npos) return;
    first_ = builder.operations().size();
    for (ir::Buffer& input : seen_) {
      if (input == nullptr || !ir::is_short_float(input->dtype)) continue;
      input = ir::make_buffer(input->name, ir::DType::kF32, input->shape);
      any_ = true;
    }
  }

  // The inputs as the emitter sees them.
  std::span<const ir::Buffer> inputs() const { return seen_; }

  // Results from index `keep` on are not rounded.
  void finish(Buffers& results, size_t keep) {
    if (!any_) return;
    for (size_t s = 0; s < seen_.size(); ++s)
      if (seen_[s] != given_[s]) short_of_.emplace(seen_[s], given_[s]);
    for (ir::Buffer& result : results) {
      const auto alias = result == nullptr ? short_of_.end() : short_of_.find(result);
      if (alias != short_of_.end()) result = alias->second;
    }
    for (size_t i = first_; i < builder_.operations().size(); ++i)
      if (!move(i, results)) read_short(i);
    if (!ir::is_short_float(given_[0]->dtype)) return;
    for (size_t r = 0; r < std::min(keep, results.size()); ++r) {
      const ir::Buffer result = results[r];
      if (result == nullptr || result->dtype != ir::DType::kF32) continue;
      std::replace(results.begin(), results.end(), result, rounded(result));
    }
  }

 private:
  // Returns the short buffer that a load of f32 stands for, or null.
  ir::Buffer short_of(const ir::Expr& e) const {
    const auto* load = ir::as<ir::Load>(e);
    const auto found = load == nullptr ? short_of_.end() : short_of_.find(load->buffer);
    return found == short_of_.end() ? nullptr : found->second;
  }

  // Keeps a stage in the short type if it only moves elements, for example adding a border of
  // zeros: its readers convert.
  //   p[i] = select(i < n, f32(x[i]), 0)    =>    p[i] = select(i < n, x[i], 0)
  bool move(size_t i, const Buffers& results) {
    const ir::OperationRef op = builder_.operations()[i];
    if (op->is_placeholder() || op->has_reduction() || op->bodies.size() != 1) return false;
    if (std::find(results.begin(), results.end(), op->output()) != results.end()) return false;
    const ir::Buffer source = moved_from(op->bodies.front());
    const ir::Expr body = source == nullptr ? ir::Expr() : moved(op->bodies.front(), source->dtype);
    if (!body.defined()) return false;
    const ir::OperationRef made = ir::compute(op->name, op->spatial, {}, ir::Combiner::kNone, {body});
    short_of_.emplace(op->output(), made->output());
    builder_.replace(i, made);
    return true;
  }

  // Returns the first short buffer that elements are selected from, or null.
  ir::Buffer moved_from(const ir::Expr& e) const {
    const auto* select = ir::as<ir::Select>(e);
    if (select == nullptr) return short_of(e);
    const ir::Buffer a = moved_from(select->a);
    return a != nullptr ? a : moved_from(select->b);
  }

  // Returns the expression in this type; undefined if it computes anything, or if a constant is not
  // representable.
  ir::Expr moved(const ir::Expr& e, ir::DType dtype) const {
    if (const auto* imm = ir::as<ir::FloatImm>(e)) {
      const bool exact = ir::scalar_float(dtype, imm->value).f == imm->value;
      return exact ? ir::float_imm(dtype, imm->value) : ir::Expr();
    }
    if (const auto* select = ir::as<ir::Select>(e)) {
      if (!ir::loads_of(select->condition).empty()) return {};
      const ir::Expr a = moved(select->a, dtype), b = moved(select->b, dtype);
      return a.defined() && b.defined() ? ir::select(select->condition, a, b) : ir::Expr();
    }
    const ir::Buffer buffer = short_of(e);
    if (buffer == nullptr || buffer->dtype != dtype) return {};
    const ir::Load& load = *ir::as<ir::Load>(e);
    for (const ir::Expr& index : load.indices)
      if (!ir::loads_of(index).empty()) return {};
    return ir::load(buffer, load.indices);
  }

  void read_short(size_t i) {
    auto operation = std::make_shared<ir::Operation>(*builder_.operations()[i]);
    for (ir::Expr& body : operation->bodies) {
      body = ir::rewrite(body, [&](const ir::Expr& e) {
        const ir::Buffer buffer = short_of(e);
        return buffer == nullptr ? e
                                 : ir::cast(ir::DType::kF32, ir::load(buffer, ir::as<ir::Load>(e)->indices));
      });
    }
    builder_.replace(i, std::move(operation));
  }

  // The operation that computes the result also rounds it, if no other operation needs the
  // unrounded value.
  ir::Buffer rounded(const ir::Buffer& result) {
    const ir::DType dtype = given_[0]->dtype;
    size_t producer = first_;
    bool read = false;
    const auto& operations = builder_.operations();
    for (size_t i = first_; i < operations.size(); ++i) {
      if (operations[i]->output() == result) producer = i;
      for (const ir::Expr& body : operations[i]->bodies)
        for (const ir::Load* load : ir::loads_of(body)) read = read || load->buffer == result;
    }
    const ir::OperationRef op = operations[producer];
    if (!read && !op->has_reduction()) {
      const ir::OperationRef made =
          ir::compute(op->name, op->spatial, {}, ir::Combiner::kNone, {ir::cast(dtype, op->bodies.front())});
      builder_.replace(producer, made);
      return made->output();
    }
    std::vector<ir::Axis> axes;
    std::vector<ir::Expr> at;
    for (const int64_t extent : result->shape) {
      axes.push_back({ir::Var("i" + std::to_string(axes.size())), extent});
      at.push_back(axes.back().var);
    }
    return builder_.compute("round", axes, {}, ir::Combiner::kNone, ir::cast(dtype, ir::load(result, at)));
  }

  std::span<const ir::Buffer> given_;
  std::vector<ir::Buffer> seen_;
  WorkloadBuilder& builder_;
  std::unordered_map<ir::Buffer, ir::Buffer> short_of_;  // by the f32 buffer that the emitter sees
  size_t first_ = 0;
  bool any_ = false;
};

}  // namespace

ir::Buffer WorkloadBuilder::placeholder(const std::string& name, ir::DType dtype, std::vector<int64_t> shape,
                                        bool is_constant, bool reduced_range) {
  operations_.push_back(
      ir::placeholder(unique_name(name), dtype, std::move(shape), is_constant, reduced_range));
  return operations_.back()->output();
}

ir::Buffer WorkloadBuilder::compute(const std::string& name, std::vector<ir::Axis> spatial,
                                    std::vector<ir::Axis> reduce, ir::Combiner combiner, ir::Expr body) {
  operations_.push_back(
      ir::compute(unique_name(name), std::move(spatial), std::move(reduce), combiner, {std::move(body)}));
  return operations_.back()->output();
}

std::vector<ir::Buffer> WorkloadBuilder::compute_pair(const std::string& name, std::vector<ir::Axis> spatial,
                                                      std::vector<ir::Axis> reduce, ir::Combiner combiner,
                                                      ir::Expr value, ir::Expr index) {
  operations_.push_back(ir::compute(unique_name(name), std::move(spatial), std::move(reduce), combiner,
                                    {std::move(value), std::move(index)}));
  return operations_.back()->outputs;
}

// Only letters, digits and '_' are kept, so that any ONNX name is also a name in the text form;
// names that are taken get a suffix "_1", "_2", ...
std::string WorkloadBuilder::unique_name(const std::string& name) {
  std::string base = name.empty() ? "t" : name;
  for (char& c : base) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  if (std::isdigit(static_cast<unsigned char>(base.front())) != 0) base.insert(base.begin(), 't');
  std::string candidate = base;
  for (int i = 1; !names_.insert(candidate).second; ++i) candidate = base + "_" + std::to_string(i);
  return candidate;
}

bool is_supported_operator(const std::string& op) {
  if (op == kMoveOperator || op.starts_with(kBoundedPrefix))
    return false;  // internal operators, which ONNX
                   // does not know
  return op == "Constant" || find_operator(op) != nullptr || find_fold_operator(op) != nullptr;
}

Result<std::vector<ir::Buffer>> emit(const Graph& graph, const Node& node, std::span<const ir::Buffer> inputs,
                                     WorkloadBuilder& builder) {
  const OpEntry* entry = find_operator(node.op);
  if (entry == nullptr && find_fold_operator(node.op) != nullptr) {
    return Error{ErrorCode::kUnsupported, node.name,
                 node.op +
                     ": all inputs must be constant, because the shape of the result depends on them, but "
                     "they are only known at run time"};
  }
  if (entry == nullptr) {
    return Error{ErrorCode::kUnsupported, node.name, "operator " + node.op + " is not supported"};
  }
  TS_RETURN_IF_ERROR(check_signature(OpContext(graph, node, inputs, builder), entry->signature));
  ShortFloats short_floats(*entry, inputs, builder);
  OpContext ctx(graph, node, short_floats.inputs(), builder);
  Result<Buffers> result = entry->emit(ctx);
  if (!result.ok()) return result;
  if (ctx.error()) return *ctx.error();
  if (result->size() < node.outputs.size()) {
    return ctx.unsupported("the node has " + std::to_string(node.outputs.size()) + " outputs, only " +
                           std::to_string(result->size()) + " are supported");
  }
  result->resize(node.outputs.size());
  short_floats.finish(*result, (entry->traits & kStatistics) != 0 ? 1 : result->size());
  return result;
}

}  // namespace tensorsmith::graph

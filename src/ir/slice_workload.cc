#include "ir/slice_workload.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "ir/analysis.h"
#include "ir/bounds.h"
#include "ir/expr_memo.h"

namespace tensorsmith::ir {
namespace {

constexpr size_t kNone = SIZE_MAX;

// Returns the outermost dimension if it can be divided into slices, else kNone.
size_t outermost(const std::vector<int64_t>& shape, int64_t slices) {
  const auto at = std::find_if(shape.begin(), shape.end(), [](int64_t extent) { return extent != 1; });
  if (at == shape.end() || *at == 0 || *at % slices != 0) return kNone;
  return at - shape.begin();
}

std::vector<int64_t> part_of(std::vector<int64_t> shape, int64_t slices, int64_t parts) {
  shape[outermost(shape, slices)] /= parts;
  return shape;
}

enum class Reading { kUndecided, kSliced, kWhole };

// Analyzes how an expression changes when its operation's outermost axis and all sliced tensors
// advance by one slice.
class Analysis {
 public:
  Analysis(const Operation& op, int64_t slices, std::unordered_map<const BufferNode*, Reading>& readings)
      : slices_(slices), readings_(readings) {
    std::vector<int64_t> shape;
    for (const Axis& axis : op.spatial) shape.push_back(axis.extent);
    const size_t dim = outermost(shape, slices);
    for (size_t i = 0; i < op.spatial.size(); ++i) {
      const int64_t extent = i == dim ? shape[i] / slices : shape[i];
      bounds_[op.spatial[i].var.get()] = {0, extent - 1};
    }
    for (const Axis& axis : op.reduce) bounds_[axis.var.get()] = {0, axis.extent - 1};
    if (dim == kNone) return;
    axis_ = op.spatial[dim].var.get();
    step_ = shape[dim] / slices;
  }

  // Returns the amount that is added to an integer; 0 means that a value of any type does not
  // change. Returns nothing if that is unknown.
  std::optional<int64_t> shift(const Expr& e) {
    if (const auto* known = memo_.find(e)) return *known;
    const auto result = visit([&](const auto& node) { return shift_of(node, e); }, e);
    memo_.remember(e, result);
    return result;
  }

 private:
  using Shift = std::optional<int64_t>;

  static Shift shift_of(const IntImm&, const Expr&) { return 0; }
  static Shift shift_of(const FloatImm&, const Expr&) { return 0; }
  Shift shift_of(const VarRef& ref, const Expr&) { return ref.var.get() == axis_ ? step_ : 0; }
  Shift shift_of(const Unary& unary, const Expr&) { return unchanged({unary.a}); }
  Shift shift_of(const Cast& cast, const Expr&) { return unchanged({cast.a}); }
  Shift shift_of(const Call& call, const Expr&) { return unchanged(call.args); }
  Shift shift_of(const Select& select, const Expr&) {
    if (shift(select.condition) != Shift(0)) return {};
    const Shift a = shift(select.a);
    return a == shift(select.b) ? a : Shift();
  }
  Shift shift_of(const Binary& binary, const Expr& e) {
    const Shift a = shift(binary.a), b = shift(binary.b);
    if (!a || !b) return {};
    if (*a == 0 && *b == 0) return 0;
    if (e->dtype != DType::kI64) return {};
    const auto factor = as_int(binary.b);
    int64_t result = 0;
    switch (binary.op) {
      case BinaryOp::kAdd:
        return __builtin_add_overflow(*a, *b, &result) ? Shift() : result;
      case BinaryOp::kSub:
        return __builtin_sub_overflow(*a, *b, &result) ? Shift() : result;
      case BinaryOp::kMin:
      case BinaryOp::kMax:
        return a == b ? a : Shift();
      case BinaryOp::kMul:
        if (factor) return __builtin_mul_overflow(*a, *factor, &result) ? Shift() : result;
        if (const auto other = as_int(binary.a))
          return __builtin_mul_overflow(*b, *other, &result) ? Shift() : result;
        return {};
      case BinaryOp::kFloorDiv:
        return factor && *factor > 0 && *a % *factor == 0 ? Shift(*a / *factor) : Shift();
      case BinaryOp::kFloorMod:
        return factor && *factor > 0 && *a % *factor == 0 ? Shift(0) : Shift();
      default:
        return {};
    }
  }
  Shift shift_of(const Load& load, const Expr&) {
    std::vector<int64_t> shifts;
    for (const Expr& index : load.indices) {
      const Shift s = shift(index);
      if (!s) return {};
      shifts.push_back(*s);
    }
    const size_t dim = outermost(load.buffer->shape, slices_);
    Reading& reading = readings_[load.buffer.get()];
    const bool still = std::all_of(shifts.begin(), shifts.end(), [](int64_t s) { return s == 0; });
    if (reading == Reading::kUndecided) reading = still ? Reading::kWhole : Reading::kSliced;
    if (reading == Reading::kWhole) return still ? Shift(0) : Shift();
    if (dim == kNone) return {};
    // The read stays within its own slice, and moves by one slice with the axis.
    const int64_t extent = load.buffer->shape[dim] / slices_;
    for (size_t d = 0; d < shifts.size(); ++d)
      if (shifts[d] != (d == dim ? extent : 0)) return {};
    const Interval range = bounds_of(load.indices[dim], bounds_);
    return range.min >= 0 && range.max < extent ? Shift(0) : Shift();
  }
  Shift unchanged(const std::vector<Expr>& parts) {
    return std::all_of(parts.begin(), parts.end(), [&](const Expr& e) { return shift(e) == Shift(0); })
               ? Shift(0)
               : Shift();
  }

  const int64_t slices_;
  std::unordered_map<const BufferNode*, Reading>& readings_;
  VarBounds bounds_;  // bounds of the first slice
  const VarNode* axis_ = nullptr;
  int64_t step_ = 0;
  ExprMemo<Shift> memo_;
};

}  // namespace

std::optional<WorkloadSlice> slice_workload(const Workload& workload, int64_t slices, int64_t parts) {
  std::unordered_map<const BufferNode*, Reading> readings;
  for (const OperationRef& op : workload.operations) {
    if (op->is_placeholder()) {
      readings[op->output().get()] = op->is_constant ? Reading::kUndecided : Reading::kSliced;
      if (!op->is_constant && outermost(op->output()->shape, slices) == kNone) return {};
      continue;
    }
    // An operation on constants alone may be needed as a whole.
    bool sliced = std::any_of(op->outputs.begin(), op->outputs.end(), [&](const Buffer& buffer) {
      return std::find(workload.outputs.begin(), workload.outputs.end(), buffer) != workload.outputs.end();
    });
    for (const Expr& body : op->bodies) {
      for (const Load* load : loads_of(body))
        sliced = sliced || readings.at(load->buffer.get()) == Reading::kSliced;
    }
    if (sliced) {
      if (outermost(op->output()->shape, slices) == kNone) return {};
      Analysis analysis(*op, slices, readings);
      for (const Expr& body : op->bodies)
        if (analysis.shift(body) != std::optional<int64_t>(0)) return {};
    } else {
      for (const Expr& body : op->bodies) {
        for (const Load* load : loads_of(body)) readings[load->buffer.get()] = Reading::kWhole;
      }
    }
    for (const Buffer& buffer : op->outputs)
      readings[buffer.get()] = sliced ? Reading::kSliced : Reading::kWhole;
  }
  if (std::any_of(workload.outputs.begin(), workload.outputs.end(),
                  [&](const Buffer& output) { return readings.at(output.get()) != Reading::kSliced; }))
    return {};

  WorkloadSlice out;
  std::unordered_map<const BufferNode*, Buffer> made;
  for (const OperationRef& op : workload.operations) {
    const bool sliced = readings.at(op->output().get()) == Reading::kSliced;
    OperationRef next;
    if (op->is_placeholder()) {
      out.sliced.push_back(sliced);
      const auto& shape = op->output()->shape;
      next = placeholder(op->name, op->output()->dtype, sliced ? part_of(shape, slices, parts) : shape,
                         op->is_constant, op->reduced_range);
    } else {
      std::vector<Axis> spatial = op->spatial;
      if (sliced) spatial[outermost(op->output()->shape, slices)].extent /= parts;
      std::vector<Expr> bodies;
      for (const Expr& body : op->bodies) {
        bodies.push_back(rewrite(body, [&](const Expr& e) -> Expr {
          const auto* read = as<Load>(e);
          return read ? load(made.at(read->buffer.get()), read->indices) : e;
        }));
      }
      next = compute(op->name, std::move(spatial), op->reduce, op->combiner, std::move(bodies));
    }
    for (size_t o = 0; o < op->outputs.size(); ++o) made[op->outputs[o].get()] = next->outputs[o];
    out.workload.operations.push_back(std::move(next));
  }
  for (const Buffer& buffer : workload.outputs) out.workload.outputs.push_back(made.at(buffer.get()));
  return out;
}

}  // namespace tensorsmith::ir

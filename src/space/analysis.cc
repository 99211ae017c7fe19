#include "space/analysis.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "ir/analysis.h"
#include "ir/bounds.h"
#include "ir/linear.h"
#include "ir/structural.h"

namespace tensorsmith::space {

namespace {

using ir::Expr;

double cost_of(ir::Intrinsic intrinsic) {
  switch (intrinsic) {
    case ir::Intrinsic::kAbs:
    case ir::Intrinsic::kSign:
    case ir::Intrinsic::kFloor:
    case ir::Intrinsic::kCeil:
    case ir::Intrinsic::kRound:
    case ir::Intrinsic::kTrunc:
    case ir::Intrinsic::kIsNan:
    case ir::Intrinsic::kIsInf:
    case ir::Intrinsic::kDot4:
    case ir::Intrinsic::kDot2:
    case ir::Intrinsic::kDot2I16:
    case ir::Intrinsic::kDot4Narrow:
    case ir::Intrinsic::kPair:
    case ir::Intrinsic::kRoundTf32:
      return 1;
    case ir::Intrinsic::kSqrt:
      return 6;
    case ir::Intrinsic::kExp:
    case ir::Intrinsic::kLog:
    case ir::Intrinsic::kSin:
    case ir::Intrinsic::kCos:
    case ir::Intrinsic::kTan:
    case ir::Intrinsic::kAsin:
    case ir::Intrinsic::kAcos:
    case ir::Intrinsic::kAtan:
    case ir::Intrinsic::kSinh:
    case ir::Intrinsic::kCosh:
    case ir::Intrinsic::kTanh:
    case ir::Intrinsic::kAsinh:
    case ir::Intrinsic::kAcosh:
    case ir::Intrinsic::kAtanh:
    case ir::Intrinsic::kErf:
      return 20;
    case ir::Intrinsic::kPow:
    case ir::Intrinsic::kFmod:
      return 40;
  }
  return 1;
}

// Walks a body and tracks whether a select guards the current place. Indices of loads are walked as
// index arithmetic, which is not counted. Neither is arithmetic that has the same value in the whole inner
// loop, nor the second of two equal expressions: generated code computes both once.
class BodyWalker {
 public:
  BodyWalker(const ir::Operation& op, const ir::Workload& workload, StageInfo& info)
      : op_(op), workload_(workload), info_(info) {
    for (const auto& axis : op.spatial) axes_.push_back(axis.var);
    for (const auto& axis : op.reduce) axes_.push_back(axis.var);
    for (const AxisId a : axes_.ids())
      if (info.is_reduce(a) ? info.extent(a) > 1 : !info.reduction && a == info.contiguous_axis)
        inner_.push_back(axes_[a]);
  }

  void walk(const Expr& e, bool guarded) {
    const bool counts = counts_;
    counts_ = counts && is_computed_each_time(e);
    walk_parts(e, guarded);
    counts_ = counts;
  }

 private:
  bool is_computed_each_time(const Expr& e) {
    if (ir::as<ir::Unary>(e) == nullptr && ir::as<ir::Binary>(e) == nullptr && ir::as<ir::Call>(e) == nullptr)
      return true;
    if (!inner_.empty() &&
        std::ranges::none_of(inner_, [&](const ir::Var& axis) { return ir::uses_var(e, axis); }))
      return false;
    if (std::ranges::any_of(computed_, [&](const Expr& other) { return ir::structural_equal(other, e); }))
      return false;
    computed_.push_back(e);
    return true;
  }

  void walk_parts(const Expr& e, bool guarded) {
    ir::visit(ir::overloaded{
                  [](const ir::IntImm&) {},
                  [](const ir::FloatImm&) {},
                  [](const ir::VarRef&) {},
                  [&](const ir::Unary& u) {
                    count(e, 1);
                    walk(u.a, guarded);
                  },
                  [&](const ir::Binary& b) {
                    const bool division = b.op == ir::BinaryOp::kDiv && ir::is_float(e->dtype);
                    // Integers have no fused multiply-add, and vpmulld is two operations.
                    const bool product = b.op == ir::BinaryOp::kMul && !ir::is_float(e->dtype);
                    count(e, division ? 6 : product ? 2 : 1);
                    if (division && as_constant(b.b) == nullptr) info_.expensive = true;
                    walk(b.a, guarded);
                    walk(b.b, guarded);
                  },
                  [&](const ir::Select& s) {
                    info_.has_select = true;
                    walk(s.condition, guarded);
                    walk(s.a, true);
                    walk(s.b, true);
                  },
                  [&](const ir::Cast& c) { walk(c.a, guarded); },
                  [&](const ir::Call& c) {
                    const double cost = cost_of(c.intrinsic);
                    if (counts_) info_.flops_per_point += cost;
                    if (cost > 1) info_.expensive = true;
                    if (ir::is_dot(c.intrinsic)) info_.dot = c.intrinsic;
                    for (const auto& a : c.args) walk(a, guarded);
                  },
                  [&](const ir::Load& l) { add_read(l, guarded); },
              },
              e);
  }

  static const ir::FloatImm* as_constant(const Expr& e) { return ir::as<ir::FloatImm>(e); }

  void count(const Expr& e, double cost) {
    // Index arithmetic inside conditions is cheap and mostly loop invariant; only data arithmetic
    // counts.
    if (counts_ && e->dtype != ir::DType::kI64 && e->dtype != ir::DType::kBool) info_.flops_per_point += cost;
  }

  void add_read(const ir::Load& load, bool guarded) {
    Read read;
    const auto producer = workload_.producer_of(load.buffer.get());
    TS_CHECK(producer.has_value(), "a stage reads a buffer that no operation defines");
    read.producer = StageId(*producer);
    read.guarded = guarded;
    for (const auto& index : load.indices) read.indices.push_back(analyze_index(index, guarded));
    read.summarize(load.buffer->effective_strides(), axes_.size());
    if (!read.affine) info_.indirect = true;
    for (auto& other : info_.reads) {
      if (!other.same_element(read, info_.extents)) continue;
      other.guarded = other.guarded && guarded;
      ++other.loads;
      return;
    }
    info_.reads.push_back(std::move(read));
  }

  ReadIndex analyze_index(const Expr& index, bool guarded) {
    ReadIndex result;
    // Loads inside an index (Gather) are reads, too.
    for (const auto* inner : ir::loads_of(index)) add_read(*inner, guarded);
    const auto affine = ir::as_affine(index);
    if (!affine) return blocked_index(index);
    result.constant = affine->constant;
    result.coefficients.assign(axes_.size(), 0);
    for (const auto& [var, coefficient] : affine->terms) {
      const AxisId axis = axis_of(var);
      if (!axis.valid()) return {};
      result.coefficients[axis] = coefficient;
    }
    result.affine = true;
    return result;
  }

  AxisId axis_of(const ir::Var& var) const {
    for (const AxisId a : axes_.ids())
      if (axes_[a] == var) return a;
    return {};
  }

  // Analyzes a sum of axes and of axes divided by constants. Any other index is neither affine nor
  // blocked.
  ReadIndex blocked_index(const Expr& index) const {
    const ir::LinearSum sum = ir::linearize(index);
    if (sum.bad) return {};
    ReadIndex result;
    result.affine = true;
    result.constant = sum.constant;
    result.coefficients.assign(axes_.size(), 0);
    for (const auto& term : sum.terms) {
      const auto* var = ir::as<ir::VarRef>(term.atom);
      int64_t block = 1;
      if (const auto* division = ir::as<ir::Binary>(term.atom)) {
        const auto* divisor = ir::as<ir::IntImm>(division->b);
        if (division->op != ir::BinaryOp::kFloorDiv || divisor == nullptr || divisor->value < 1) return {};
        var = ir::as<ir::VarRef>(division->a);
        block = divisor->value;
      }
      const AxisId axis = var == nullptr ? AxisId() : axis_of(var->var);
      if (!axis.valid()) return {};
      ReadIndex part;
      part.affine = block == 1;
      part.blocked = !part.affine;
      part.coefficients.assign(axes_.size(), 0);
      part.coefficients[axis] = 1;
      if (part.blocked) {
        part.blocks.assign(axes_.size(), 1);
        part.blocks[axis] = block;
      }
      result.add(part, term.coefficient);
    }
    return result;
  }

  const ir::Operation& op_;
  const ir::Workload& workload_;
  StageInfo& info_;
  IdVector<AxisId, ir::Var> axes_;
  std::vector<ir::Var> inner_;  // axes of the inner loops: those reduced, else the contiguous one
  std::vector<Expr> computed_;  // arithmetic that was counted
  bool counts_ = true;          // whether the current place is counted
};

bool misses_a_spatial_axis(const StageInfo& info, const Read& read) {
  for (const AxisId a : info.spatial_axes())
    if (info.extent(a) > 1 && !read.depends_on(a)) return true;
  return false;
}

// Returns whether windows overlap (pooling 3x3 with stride 2), so that neighbouring points read the
// same elements.
bool windows_overlap(const StageInfo& info, const Read& read) {
  for (const auto& index : read.indices) {
    if (!index.affine) continue;
    int64_t reach = 0, step = 0;
    for (const AxisId a : info.axes()) {
      const int64_t coefficient = std::abs(index.coefficients[a]);
      if (coefficient == 0 || info.extent(a) == 1) continue;
      if (info.is_reduce(a)) {
        reach += coefficient * (info.extent(a) - 1);
      } else if (step == 0 || coefficient < step) {
        step = coefficient;
      }
    }
    if (step > 0 && reach >= step) return true;
  }
  return false;
}

bool stays_short(const ir::Workload& workload, const StageInfo& info, const ir::Operation& op) {
  if (info.output || info.reduction || op.bodies.size() != 1 || !ir::only_moves(op.bodies.front()))
    return true;
  const ir::Buffer& made = op.output();
  for (const StageId c : info.consumers) {
    for (const ir::Expr& body : workload.operations[c.place()]->bodies) {
      const Expr rest = ir::rewrite(body, [&](const Expr& e) {
        const ir::Load* load = ir::converted_load(e, ir::DType::kF32);
        return load != nullptr && load->buffer == made ? ir::float_imm(ir::DType::kF32, 0) : e;
      });
      for (const ir::Load* load : ir::loads_of(rest))
        if (load->buffer == made) return true;
    }
  }
  return false;
}

}  // namespace

void ReadIndex::add(const ReadIndex& other, int64_t factor) {
  if (factor == 0 || !(affine || blocked)) return;
  const auto refuse = [&] { *this = ReadIndex{}; };
  if (!(other.affine || other.blocked)) return refuse();
  constant += factor * other.constant;
  for (const AxisId a : coefficients.ids()) {
    if (other.coefficients[a] == 0) continue;
    const int64_t block = other.blocked ? other.blocks[a] : 1;
    const int64_t own = blocked ? blocks[a] : 1;
    if (coefficients[a] != 0 && own != block) return refuse();
    if (block > 1 && !blocked) {
      blocks.assign(coefficients.size(), 1);
      blocked = true;
      affine = false;
    }
    if (blocked) blocks[a] = block;
    coefficients[a] += factor * other.coefficients[a];
  }
}

int64_t Read::block_of(AxisId axis) const {
  int64_t block = 0;
  for (const auto& index : indices)
    if (index.blocked && index.blocks[axis] > 1 && index.coefficients[axis] != 0)
      block = std::gcd(block, index.blocks[axis]);
  return block == 0 ? 1 : block;
}

bool Read::same_element(const Read& other, const IdVector<AxisId, int64_t>& extents) const {
  if (producer != other.producer || !affine || !other.affine) return false;
  for (const AxisId d : indices.ids()) {
    if (indices[d].constant != other.indices[d].constant) return false;
    // The only point of an axis of extent 1 may be written as the constant 0.
    for (const AxisId a : extents.ids())
      if (extents[a] > 1 && indices[d].coefficients[a] != other.indices[d].coefficients[a]) return false;
  }
  return true;
}

void Read::summarize(const std::vector<int64_t>& strides_of_dims, size_t axes) {
  affine = true;
  blocked = false;
  strides.clear();
  for (const auto& index : indices) {
    if (!index.affine && !index.blocked) {
      affine = blocked = false;
      return;
    }
    affine = affine && index.affine;
    blocked = blocked || index.blocked;
  }
  strides.assign(axes, 0);
  for (const AxisId d : indices.ids())
    for (const AxisId a : strides.ids())
      if (!indices[d].blocked || indices[d].blocks[a] == 1)
        strides[a] += strides_of_dims[d.place()] * indices[d].coefficients[a];
}

AxisId ReadIndex::single_axis() const {
  if (!affine) return {};
  AxisId axis;
  for (const AxisId a : coefficients.ids()) {
    if (coefficients[a] == 0) continue;
    if (axis.valid() || coefficients[a] != 1) return {};
    axis = a;
  }
  return axis;
}

double StageInfo::spatial_points() const {
  double points = 1;
  for (const AxisId a : spatial_axes()) points *= extent(a);
  return points;
}

double StageInfo::reduce_points() const {
  double points = 1;
  for (const AxisId a : reduce_axes()) points *= extent(a);
  return points;
}

WorkloadAnalysis::WorkloadAnalysis(const ir::Workload& workload, bool widens)
    : stages(workload.operations.size()) {
  for (const StageId s : stages.ids()) {
    const auto& op = *workload.operations[s.place()];
    auto& info = stages[s];
    info.placeholder = op.is_placeholder();
    info.constant = op.is_constant;
    info.reduction = op.has_reduction();
    info.arg_reduction = op.outputs.size() > 1;
    info.num_spatial = op.spatial.size();
    info.element_bytes = ir::bytes_of(op.output()->dtype);
    for (const auto& axis : op.spatial) info.extents.push_back(axis.extent);
    for (const auto& axis : op.reduce) info.extents.push_back(axis.extent);
    for (const AxisId a : info.spatial_axes())
      if (info.extent(a) > 1) info.contiguous_axis = a;
    for (const auto& output : op.outputs)
      for (const auto& wanted : workload.outputs) info.output = info.output || wanted == output;
    BodyWalker walker(op, workload, info);
    for (const auto& body : op.bodies) walker.walk(body, false);
    if (info.reduction) info.flops_per_point += 1;
    for (const auto& read : info.reads) {
      auto& consumers = stages[read.producer].consumers;
      if (consumers.empty() || consumers.back() != s) consumers.push_back(s);
      if (info.reduction && (misses_a_spatial_axis(info, read) || windows_overlap(info, read)))
        info.data_reuse = true;
    }
  }
  if (!widens) return;
  for (const StageId s : stages.ids()) {
    const auto& op = *workload.operations[s.place()];
    const ir::DType dtype = op.output()->dtype;
    if (ir::is_short_float(dtype) && !op.is_placeholder() && !stays_short(workload, stages[s], op))
      stages[s].element_bytes = ir::bytes_of(ir::DType::kF32);
  }
}

AxisMap WorkloadAnalysis::axis_map(const Read& read) const {
  AxisMap map;
  for (const auto& index : read.indices)
    map.push_back(index.affine && index.constant == 0 ? index.single_axis() : AxisId());
  return map;
}

bool WorkloadAnalysis::reads_elementwise(StageId consumer, StageId producer) const {
  const auto& info = stages[consumer];
  if (info.reduction) return false;
  const Read* only = nullptr;
  for (const auto& read : info.reads) {
    if (read.producer != producer) continue;
    if (only != nullptr) return false;
    only = &read;
  }
  if (only == nullptr || !only->affine) return false;
  const auto& produced = stages[producer];
  IdVector<AxisId, bool> used(info.num_axes(), false);
  const auto map = axis_map(*only);
  for (const AxisId d : map.ids()) {
    if (produced.extent(d) == 1 && !map[d].valid()) continue;
    if (!map[d].valid() || used[map[d]]) return false;
    if (info.extent(map[d]) != produced.extent(d)) return false;
    used[map[d]] = true;
  }
  for (const AxisId a : used.ids())
    if (!used[a] && info.extent(a) > 1) return false;
  return true;
}

}  // namespace tensorsmith::space

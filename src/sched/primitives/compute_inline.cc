// compute_inline(stage)
//   Arguments: a stage without reduction.
//   Rewrite: every read of the stage in another stage's definition is replaced by its body at these indices;
//     the stage computes nothing any more. It keeps its number, so that the positions in later steps stay valid.
//     A product that becomes an operand of a sum is still rounded first, as in the stage (ir/expr.h).
//   Checks: no placeholder, no output, no reduction, no packed layout; nothing is attached to its loops; the
//     readers' definitions, when printed, have fewer than kMaxInlinedSize nodes.
//
//     B[i] = A[i] * 2        inline B         C[i] = A[i + 1] * 2 + 1
//     C[i] = B[i + 1] + 1       =>
#include <algorithm>
#include <utility>

#include "ir/analysis.h"
#include "ir/structural.h"
#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"

namespace tensorsmith::sched::primitives {

namespace {

// The operation's body at the indices of each read; equal reads share a node, so that they remain
// one computation.
class InlinedReads {
 public:
  explicit InlinedReads(const ir::Operation& op) : op_(op) {}

  ir::Expr at(const ir::Expr& read) {
    for (const auto& [known, value] : known_) {
      if (ir::structural_equal(known, read)) return value;
    }
    const ir::Load& load = *ir::as<ir::Load>(read);
    ir::VarMap map;
    for (size_t d = 0; d < op_.spatial.size(); ++d) {
      const ir::Expr& index = load.indices[d];
      map[op_.spatial[d].var.get()] =
          index.dtype() == ir::DType::kI64 ? index : ir::cast(ir::DType::kI64, index);
    }
    known_.emplace_back(read, ir::substitute(op_.bodies[0], map));
    return known_.back().second;
  }

  // Makes inlined products that are operands of a sum keep their own rounding.
  ir::Expr rounded_before_addition(const ir::Expr& e) const {
    const auto* sum = ir::as<ir::Binary>(e);
    if (sum == nullptr || (sum->op != ir::BinaryOp::kAdd && sum->op != ir::BinaryOp::kSub)) return e;
    const auto rounded = [&](const ir::Expr& operand) {
      return is_inlined(operand) && ir::is_float_product(operand) ? ir::cast(operand.dtype(), operand)
                                                                  : operand;
    };
    const ir::Expr a = rounded(sum->a);
    const ir::Expr b = rounded(sum->b);
    return a.same_as(sum->a) && b.same_as(sum->b) ? e : ir::binary(sum->op, a, b);
  }

 private:
  bool is_inlined(const ir::Expr& e) const {
    return std::any_of(known_.begin(), known_.end(),
                       [&](const auto& known) { return known.second.same_as(e); });
  }

  const ir::Operation& op_;
  std::vector<std::pair<ir::Expr, ir::Expr>> known_;
};

// Returns the reader's stage with its reads replaced by the operation's body; an empty list if that
// becomes too large.
std::vector<Stage> inlined_stage(const ir::Operation& op, const ir::Operation& reader) {
  const ir::Buffer& buffer = op.output();
  const int64_t own_size = ir::written_size(op.bodies[0]);
  int64_t size = 0;
  for (const ir::Expr& body : reader.bodies) {
    const int64_t written =
        ir::written_size(body, [&](const ir::Load& l) { return l.buffer == buffer ? own_size : 0; });
    size = written > kMaxInlinedSize ? written : size + written;
  }
  if (size > kMaxInlinedSize) return {};
  auto op_copy = std::make_shared<ir::Operation>(reader);
  for (ir::Expr& body : op_copy->bodies) {
    InlinedReads reads(op);
    body = ir::rewrite(body, [&](const ir::Expr& e) {
      const auto* load = ir::as<ir::Load>(e);
      if (load == nullptr || load->buffer != buffer) return reads.rounded_before_addition(e);
      return reads.at(e);
    });
  }
  return {Stage::create(std::move(op_copy))};
}

}  // namespace

Status apply(Schedule& schedule, const ComputeInline& step, Rewrites& rewrites) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, step.stage));
  Stage& stage = schedule.stages[s];
  const std::string name = "stage '" + stage.op->name + "'";
  if (stage.op->has_reduction()) return illegal(name + " is a reduction, it cannot be inlined");
  if (schedule.is_output(s)) return illegal(name + " is an output of the workload, it cannot be inlined");
  if (stage.layout) return illegal(name + " has a packed layout, it cannot be inlined");
  TS_RETURN_IF_ERROR(check_nothing_attached(schedule, s));
  const std::vector<StageId> readers = schedule.consumers_of(s);
  if (readers.empty()) return illegal("no stage reads " + name);

  // All readers or none are changed: on an error the schedule stays as it was.
  std::vector<const Stage*> rewritten;
  for (const StageId r : readers) {
    const ir::OperationRef& reader = schedule.stages[r].op;
    const auto& made = rewrites.get({Rewrites::Kind::kInline, reader, stage.op, nullptr, {}, {}},
                                    [&] { return inlined_stage(*stage.op, *reader); });
    if (made.empty())
      return illegal("inlining " + name + " makes the definition of stage '" + reader->name +
                     "' too large; compute it instead");
    rewritten.push_back(made.data());
  }
  for (size_t i = 0; i < readers.size(); ++i) {
    schedule.stages[readers[i]].op = rewritten[i]->op;
    schedule.stages[readers[i]].reads = rewritten[i]->reads;
  }
  stage.attach = AttachKind::kInlined;
  stage.attach_stage = {};
  stage.attach_iterator = {};
  return {};
}

}  // namespace tensorsmith::sched::primitives

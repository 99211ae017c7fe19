#include "sched/reads.h"

#include <algorithm>
#include <optional>

#include "base/result.h"
#include "ir/analysis.h"
#include "ir/structural.h"

namespace tensorsmith::sched {

std::optional<size_t> axis_number(const ir::Operation& op, const ir::Var& var) {
  for (size_t a = 0; a < op.spatial.size(); ++a)
    if (op.spatial[a].var == var) return a;
  for (size_t a = 0; a < op.reduce.size(); ++a)
    if (op.reduce[a].var == var) return op.spatial.size() + a;
  return std::nullopt;
}

namespace {

// A new expression is compared with at most this many others. Hand-written operations have fewer,
// and an index that gets two ids only costs time.
constexpr size_t kCompared = 64;

// Adds factor * e; returns false if e is no sum of axes, or if an axis occurs twice.
bool take_apart(const ir::Operation& op, const ir::Expr& e, int64_t factor, ir::AffineSum<size_t>& out) {
  if (e.dtype() != ir::DType::kI64) return false;
  const auto bounded = [](int64_t x) { return x < ir::kIndexLimit && x > -ir::kIndexLimit; };
  if (const auto* imm = ir::as<ir::IntImm>(e)) {
    int64_t value = 0;
    if (!bounded(imm->value) || __builtin_mul_overflow(imm->value, factor, &value)) return false;
    return !__builtin_add_overflow(out.constant, value, &out.constant) && bounded(out.constant);
  }
  if (const auto* ref = ir::as<ir::VarRef>(e)) {
    const auto axis = axis_number(op, ref->var);
    if (!axis) return false;
    for (const auto& term : out.terms)
      if (term.atom == *axis) return false;
    out.terms.push_back({*axis, factor});
    return true;
  }
  const auto* binary = ir::as<ir::Binary>(e);
  if (binary == nullptr) return false;
  if (binary->op == ir::BinaryOp::kAdd || binary->op == ir::BinaryOp::kSub)
    return take_apart(op, binary->a, factor, out) &&
           take_apart(op, binary->b, binary->op == ir::BinaryOp::kAdd ? factor : -factor, out);
  if (binary->op != ir::BinaryOp::kMul) return false;
  auto constant = ir::as_int(binary->b);
  const ir::Expr& other = constant ? binary->a : binary->b;
  if (!constant) constant = ir::as_int(binary->a);
  int64_t product = 0;
  if (!constant || *constant == 0 || __builtin_mul_overflow(factor, *constant, &product)) return false;
  return bounded(product) && take_apart(op, other, product, out);
}

}  // namespace

Reads::Reads(const ir::Operation& op) {
  for (const ir::Expr& body : op.bodies)
    for (const ir::Load* load : ir::loads_of(body)) loads_.push_back(load);
  for (const ir::Load* load : loads_) {
    const ir::BufferNode* buffer = load->buffer.get();
    auto tensor =
        std::find_if(tensors_.begin(), tensors_.end(), [&](const Tensor& t) { return t.buffer == buffer; });
    if (tensor == tensors_.end()) tensor = tensors_.insert(tensor, Tensor{buffer, {}});
    first_.emplace_back(load, used_.size());
    for (size_t d = 0; d < load->indices.size(); ++d)
      used_.push_back(intern(op, *tensor, d, load->indices[d]));
  }
  std::sort(first_.begin(), first_.end());
}

Reads::IndexId Reads::intern(const ir::Operation& op, Tensor& tensor, size_t dim, const ir::Expr& index) {
  size_t compared = 0;
  for (const Use& use : tensor.uses) {
    if (use.dim != dim) continue;
    if (ir::structural_equal(*indices_[use.index].expr, index)) return use.index;
    if (++compared == kCompared) break;
  }
  Index made;
  made.expr = &index;
  if (ir::AffineSum<size_t> sum; take_apart(op, index, 1, sum)) made.sum = std::move(sum);
  const IndexId id = indices_.push_back(std::move(made));
  tensor.uses.push_back({dim, id});
  return id;
}

bool Reads::has(const ir::BufferNode* buffer) const {
  return std::any_of(tensors_.begin(), tensors_.end(), [&](const Tensor& t) { return t.buffer == buffer; });
}

const Reads::IndexId* Reads::indices_of(const ir::Load* load) const {
  const auto at = std::lower_bound(first_.begin(), first_.end(), std::pair(load, size_t{0}));
  TS_CHECK(at != first_.end() && at->first == load, "a load does not belong to its operation");
  return used_.data() + at->second;
}

}  // namespace tensorsmith::sched

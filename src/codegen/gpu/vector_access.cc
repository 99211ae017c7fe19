#include "codegen/gpu/vector_access.h"

#include <unordered_set>

#include "codegen/c/expr.h"
#include "ir/analysis.h"
#include "ir/parts.h"
#include "ir/simplify.h"

namespace tensorsmith::codegen {

using ir::Expr;

bool is_vector(const ir::Buffer& buffer, const std::vector<Expr>& indices, const ir::Var& lane, int64_t lanes,
               const ir::VarBounds& bounds) {
  const bool power_of_two = lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16;
  if (!power_of_two || lanes * ir::bytes_of(buffer->dtype) > kMaxVectorBytes) return false;
  for (const Expr& i : indices)
    if (!ir::loads_of(i).empty()) return false;
  const auto at = [&](int64_t k) {
    std::vector<Expr> here;
    for (const Expr& i : indices) here.push_back(ir::substitute(i, {{lane.get(), Expr(k)}}));
    return flat_index(buffer, here, bounds);
  };
  const Expr first = at(0);
  const auto rest = ir::as_int(ir::simplify(ir::floormod(first, Expr(lanes)), bounds));
  if (!rest || *rest != 0) return false;
  for (int64_t k = 1; k < lanes; ++k) {
    const auto distance = ir::as_int(ir::simplify(at(k) - first, bounds));
    if (!distance || *distance != k) return false;
  }
  return true;
}

namespace {

void collect(const Expr& e, std::unordered_set<const ir::ExprNode*>& seen, std::vector<Expr>& loads) {
  if (!seen.insert(e.get()).second) return;
  if (const auto* select = ir::as<ir::Select>(e)) return collect(select->condition, seen, loads);
  if (ir::as<ir::Load>(e) != nullptr) loads.push_back(e);
  ir::for_each_part(e, [&](const Expr& part) { collect(part, seen, loads); });
}

}  // namespace

std::vector<Expr> certain_loads(const Expr& e) {
  std::vector<Expr> loads;
  std::unordered_set<const ir::ExprNode*> seen;
  collect(e, seen, loads);
  return loads;
}

}  // namespace tensorsmith::codegen

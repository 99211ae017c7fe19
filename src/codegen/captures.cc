#include "codegen/captures.h"

#include <unordered_set>

#include "ir/analysis.h"

namespace tensorsmith::codegen {

Captures captures_of(const ir::Stmt& body) {
  Captures all;
  std::unordered_set<const ir::VarNode*> vars;
  std::unordered_set<const ir::BufferNode*> buffers;
  const auto use_buffer = [&](const ir::Buffer& buffer) {
    if (buffers.insert(buffer.get()).second) all.buffers.push_back(buffer);
  };
  const auto use_expr = [&](const ir::Expr& e) {
    ir::for_each_expr(e, [&](const ir::Expr& x) {
      if (const auto* ref = ir::as<ir::VarRef>(x))
        if (vars.insert(ref->var.get()).second) all.vars.push_back(ref->var);
      if (const auto* l = ir::as<ir::Load>(x)) use_buffer(l->buffer);
    });
  };
  ir::for_each_stmt(body, [&](const ir::Stmt& s) {
    ir::visit(ir::overloaded{[&](const ir::For& inner) { use_expr(inner.extent); },
                             [&](const ir::Store& st) {
                               use_buffer(st.buffer);
                               for (const ir::Expr& i : st.indices) use_expr(i);
                               use_expr(st.value);
                             },
                             [&](const ir::IfThenElse& branch) { use_expr(branch.condition); },
                             [&](const ir::Seq&) {}, [&](const ir::Allocate&) {}},
              s);
  });
  return all;
}

}  // namespace tensorsmith::codegen

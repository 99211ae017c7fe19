#include "ir/parts.h"

namespace tensorsmith::ir {

Stmt map_parts(const Stmt& s, const std::function<Stmt(const Stmt&)>& fn) {
  if (s == nullptr) return s;
  const auto map = [&](const Stmt& part) { return part == nullptr ? part : fn(part); };
  return visit(overloaded{
                   [&](const For& n) {
                     Stmt body = map(n.body);
                     if (body == n.body) return s;
                     For loop = n;
                     loop.body = std::move(body);
                     return make_for(std::move(loop));
                   },
                   [&](const Store&) { return s; },
                   [&](const IfThenElse& n) {
                     Stmt then_body = map(n.then_body);
                     Stmt else_body = map(n.else_body);
                     if (then_body == n.then_body && else_body == n.else_body) return s;
                     return make_if(n.condition, std::move(then_body), std::move(else_body));
                   },
                   [&](const Seq& n) {
                     bool changed = false;
                     std::vector<Stmt> stmts;
                     stmts.reserve(n.stmts.size());
                     for (const Stmt& part : n.stmts) {
                       stmts.push_back(map(part));
                       changed |= stmts.back() != part;
                     }
                     return changed ? make_seq(std::move(stmts)) : s;
                   },
                   [&](const Allocate& n) {
                     Stmt body = map(n.body);
                     return body == n.body ? s : make_allocate(n.buffer, std::move(body));
                   },
               },
               s);
}

}  // namespace tensorsmith::ir

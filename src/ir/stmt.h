// Loop programs, which lowering produces, the interpreter runs and the backends compile. They are
// immutable values.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/expr.h"

namespace tensorsmith::ir {

struct StmtNode;
using Stmt = std::shared_ptr<const StmtNode>;

enum class ForKind : uint8_t {
  kSerial,
  kParallel,    // iterations are independent and run on the runtime's threads
  kVectorized,  // constant extent; the body is executed for all lanes at once
  kUnrolled,    // constant extent; the backend unrolls it completely
  kThread,      // bound to a GPU thread axis
};
enum class ThreadAxis : uint8_t { kNone, kBlockX, kBlockY, kBlockZ, kThreadX, kThreadY, kThreadZ, kVirtual };
std::string_view to_string(ForKind kind);
std::string_view to_string(ThreadAxis axis);

// for var in [0, extent): body. The extent is kI64; it may depend on enclosing variables only in
// kSerial loops.
struct For {
  Var var;
  Expr extent;
  ForKind kind = ForKind::kSerial;
  ThreadAxis thread = ThreadAxis::kNone;
  // Loops inside are unrolled if the product of their extents is at most this; 0 = the backend
  // decides (Ansor's pragma auto_unroll_max_step).
  int64_t auto_unroll_max_step = 0;
  Stmt body;
};
// buffer[indices] = value
struct Store {
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
};
struct IfThenElse {
  Expr condition;
  Stmt then_body;
  Stmt else_body;  // may be null
};
struct Seq {
  std::vector<Stmt> stmts;
};
// The buffer lives for the execution of body; its contents start undefined.
struct Allocate {
  Buffer buffer;
  Stmt body;
};

struct StmtNode {
  using Kind = std::variant<For, Store, IfThenElse, Seq, Allocate>;
  Kind kind;
};

template <class Visitor>
decltype(auto) visit(Visitor&& visitor, const Stmt& s) {
  return std::visit(std::forward<Visitor>(visitor), s->kind);
}
template <class T>
const T* as(const Stmt& s) {
  return s ? std::get_if<T>(&s->kind) : nullptr;
}

Stmt make_for(For loop);
Stmt make_store(Buffer buffer, std::vector<Expr> indices, Expr value);
Stmt make_if(Expr condition, Stmt then_body, Stmt else_body = nullptr);
Stmt make_seq(std::vector<Stmt> stmts);  // flattens nested Seqs; a single statement stays itself
Stmt make_allocate(Buffer buffer, Stmt body);

// A whole kernel. Parameters are passed in this order: inputs, then outputs.
struct Program {
  std::string name;
  std::vector<Buffer> inputs;
  std::vector<Buffer> outputs;
  Stmt body;
};

}  // namespace tensorsmith::ir

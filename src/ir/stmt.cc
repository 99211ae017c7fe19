#include "ir/stmt.h"

#include <utility>

namespace tensorsmith::ir {

namespace {

Stmt make(StmtNode::Kind kind) { return std::make_shared<const StmtNode>(StmtNode{std::move(kind)}); }

void append_flat(std::vector<Stmt>& out, Stmt s) {
  if (s == nullptr) return;
  if (const Seq* seq = as<Seq>(s)) {
    for (const Stmt& inner : seq->stmts) append_flat(out, inner);
  } else {
    out.push_back(std::move(s));
  }
}

}  // namespace

std::string_view to_string(ForKind kind) {
  switch (kind) {
    case ForKind::kSerial:
      return "serial";
    case ForKind::kParallel:
      return "parallel";
    case ForKind::kVectorized:
      return "vectorized";
    case ForKind::kUnrolled:
      return "unrolled";
    case ForKind::kThread:
      return "thread";
  }
  return "?";
}

std::string_view to_string(ThreadAxis axis) {
  switch (axis) {
    case ThreadAxis::kNone:
      return "none";
    case ThreadAxis::kBlockX:
      return "block_x";
    case ThreadAxis::kBlockY:
      return "block_y";
    case ThreadAxis::kBlockZ:
      return "block_z";
    case ThreadAxis::kThreadX:
      return "thread_x";
    case ThreadAxis::kThreadY:
      return "thread_y";
    case ThreadAxis::kThreadZ:
      return "thread_z";
    case ThreadAxis::kVirtual:
      return "virtual";
  }
  return "?";
}

Stmt make_for(For loop) {
  TS_CHECK(loop.var.defined() && loop.var.dtype() == DType::kI64, "a loop variable must be an i64");
  TS_CHECK(loop.extent.defined() && loop.extent.dtype() == DType::kI64, "a loop extent must be an i64");
  TS_CHECK(loop.body != nullptr, "a loop without a body");
  TS_CHECK((loop.kind == ForKind::kThread) == (loop.thread != ThreadAxis::kNone),
           "thread loops, and only these, need a thread axis");
  TS_CHECK(loop.auto_unroll_max_step >= 0, "negative auto_unroll_max_step");
  return make(std::move(loop));
}

Stmt make_store(Buffer buffer, std::vector<Expr> indices, Expr value) {
  TS_CHECK(buffer != nullptr && value.defined(), "store: undefined operand");
  TS_CHECK(indices.size() == buffer->shape.size(),
           "store to '" + buffer->name + "': wrong number of indices");
  for (const Expr& index : indices)
    TS_CHECK(index.defined() && is_int(index.dtype()),
             "store to '" + buffer->name + "': index is not an integer");
  TS_CHECK(value.dtype() == buffer->dtype,
           "store to '" + buffer->name + "': value and buffer have different dtypes");
  return make(Store{std::move(buffer), std::move(indices), std::move(value)});
}

Stmt make_if(Expr condition, Stmt then_body, Stmt else_body) {
  TS_CHECK(condition.defined() && condition.dtype() == DType::kBool, "if: the condition is not bool");
  TS_CHECK(then_body != nullptr, "if without a body");
  return make(IfThenElse{std::move(condition), std::move(then_body), std::move(else_body)});
}

Stmt make_seq(std::vector<Stmt> stmts) {
  std::vector<Stmt> flat;
  flat.reserve(stmts.size());
  for (Stmt& s : stmts) append_flat(flat, std::move(s));
  if (flat.size() == 1) return flat.front();
  return make(Seq{std::move(flat)});
}

Stmt make_allocate(Buffer buffer, Stmt body) {
  TS_CHECK(buffer != nullptr && body != nullptr, "allocate: undefined operand");
  return make(Allocate{std::move(buffer), std::move(body)});
}

}  // namespace tensorsmith::ir

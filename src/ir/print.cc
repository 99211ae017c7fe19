// The text form is described in docs/text_format.md.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/text.h"
#include "ir/text_names.h"

namespace tensorsmith::ir {

namespace {

// Precedence of operators, as in the parser's table (parse_expr.cc); atoms have 100.
constexpr int kUnaryStrength = 90;
constexpr int kAtomStrength = 100;

class Printer {
 public:
  std::string take() { return std::move(out_); }

  void expr(const Expr& e) { expr(e, 0); }

  void stmt(const Stmt& s) {
    if (s == nullptr) return;
    visit(overloaded{
              [&](const For& n) { for_loop(n); },
              [&](const Store& n) {
                indent();
                access(n.buffer, n.indices);
                out_ += " = ";
                expr(n.value);
                out_ += '\n';
              },
              [&](const IfThenElse& n) {
                indent();
                out_ += "if ";
                expr(n.condition);
                block(n.then_body);
                if (n.else_body != nullptr) {
                  out_.pop_back();
                  out_ += " else";
                  block(n.else_body);
                }
              },
              [&](const Seq& n) {
                for (const Stmt& child : n.stmts) stmt(child);
              },
              [&](const Allocate& n) {
                indent();
                out_ += "alloc ";
                declare(n.buffer);
                block(n.body);
                buffers_.leave(n.buffer.get());
              },
          },
          s);
  }

  void program(const Program& p) {
    out_ += "program " + quote_name(p.name) + " {\n";
    ++depth_;
    for (const Buffer& buffer : p.inputs) parameter("input ", buffer);
    for (const Buffer& buffer : p.outputs) parameter("output ", buffer);
    stmt(p.body);
    --depth_;
    out_ += "}\n";
  }

  void workload(const Workload& w) {
    out_ += "workload {\n";
    ++depth_;
    for (const OperationRef& op : w.operations) {
      if (op->is_placeholder()) {
        parameter(op->reduced_range ? "const(reduced_range) "
                  : op->is_constant ? "const "
                                    : "input ",
                  op->output());
      } else {
        operation(*op);
      }
    }
    if (!w.outputs.empty()) {
      indent();
      out_ += "output ";
      for (size_t i = 0; i < w.outputs.size(); ++i) {
        if (i > 0) out_ += ", ";
        out_ += quote_name(buffers_.find(w.outputs[i].get(), w.outputs[i]->name));
      }
      out_ += '\n';
    }
    --depth_;
    out_ += "}\n";
  }

 private:
  // Names in scope; a number is appended to a name that is already in use.
  class Names {
   public:
    const std::string& enter(const void* node, const std::string& wanted) {
      std::string name = wanted.empty() ? "_" : wanted;
      for (int i = 1; !taken_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
      return names_[node] = std::move(name);
    }
    void leave(const void* node) {
      const auto it = names_.find(node);
      if (it == names_.end()) return;
      taken_.erase(it->second);
      names_.erase(it);
    }
    const std::string& find(const void* node, const std::string& otherwise) const {
      const auto it = names_.find(node);
      return it == names_.end() ? otherwise : it->second;
    }

   private:
    std::unordered_map<const void*, std::string> names_;
    std::unordered_set<std::string> taken_;
  };

  void indent() { out_.append(2 * depth_, ' '); }

  void block(const Stmt& body) {
    out_ += " {\n";
    ++depth_;
    stmt(body);
    --depth_;
    indent();
    out_ += "}\n";
  }

  void for_loop(const For& n) {
    indent();
    out_ += n.kind == ForKind::kThread ? to_string(n.thread)
                                       : (n.kind == ForKind::kSerial ? "for" : to_string(n.kind));
    // The variable is not in scope in the extent.
    std::string extent;
    std::swap(extent, out_);
    expr(n.extent);
    std::swap(extent, out_);
    out_ += ' ' + quote_name(variables_.enter(n.var.get(), n.var.name())) + " in " + extent;
    if (n.auto_unroll_max_step != 0) out_ += " auto_unroll " + std::to_string(n.auto_unroll_max_step);
    block(n.body);
    variables_.leave(n.var.get());
  }

  void list(const std::vector<int64_t>& values, char open, char close) {
    out_ += open;
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += std::to_string(values[i]);
    }
    out_ += close;
  }

  void scope_of(const Buffer& buffer) {
    if (buffer->scope == MemoryScope::kGlobal) return;
    out_ += ' ';
    out_ += to_string(buffer->scope);
  }

  void declare(const Buffer& buffer) {
    out_ += quote_name(buffers_.enter(buffer.get(), buffer->name)) + ": ";
    out_ += to_string(buffer->dtype);
    list(buffer->shape, '[', ']');
    if (!buffer->strides.empty()) {
      out_ += " strides";
      list(buffer->strides, '(', ')');
    }
    scope_of(buffer);
  }

  void parameter(std::string_view kind, const Buffer& buffer) {
    indent();
    out_ += kind;
    declare(buffer);
    out_ += '\n';
  }

  void axes(const std::vector<Axis>& list, char open, char close) {
    out_ += open;
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += quote_name(variables_.enter(list[i].var.get(), list[i].var.name())) + ": " +
              std::to_string(list[i].extent);
    }
    out_ += close;
  }

  void operation(const Operation& op) {
    // One body:    name: f32[i: 4, j: 5] = sum{k: 6} body
    // Two bodies:  name, name.index: (f32, i64)[i: 4] = argmax{k: 6} (body, body)
    const bool two = op.bodies.size() > 1;
    indent();
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += quote_name(buffers_.enter(op.outputs[i].get(), op.outputs[i]->name));
    }
    out_ += two ? ": (" : ": ";
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += to_string(op.outputs[i]->dtype);
    }
    if (two) out_ += ')';
    axes(op.spatial, '[', ']');
    scope_of(op.output());
    out_ += " = ";
    if (op.has_reduction()) {
      out_ += to_string(op.combiner);
      axes(op.reduce, '{', '}');
      out_ += ' ';
    }
    if (two) out_ += '(';
    for (size_t i = 0; i < op.bodies.size(); ++i) {
      if (i > 0) out_ += ", ";
      expr(op.bodies[i]);
    }
    if (two) out_ += ')';
    out_ += '\n';
    for (const Axis& axis : op.spatial) variables_.leave(axis.var.get());
    for (const Axis& axis : op.reduce) variables_.leave(axis.var.get());
  }

  void arguments(const std::vector<Expr>& args) {
    for (size_t i = 0; i < args.size(); ++i) {
      if (i > 0) out_ += ", ";
      expr(args[i]);
    }
  }

  void access(const Buffer& buffer, const std::vector<Expr>& indices) {
    out_ += quote_name(buffers_.find(buffer.get(), buffer->name));
    out_ += '[';
    arguments(indices);
    out_ += ']';
  }

  void int_literal(DType dtype, int64_t value) {
    if (dtype == DType::kBool) {
      out_ += value != 0 ? "true" : "false";
      return;
    }
    out_ += dtype == DType::kU64 ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
    if (dtype != DType::kI64) out_ += to_string(dtype);
  }

  void float_literal(DType dtype, double value) {
    if (!std::isfinite(value)) {
      out_ += to_string(dtype);
      out_ += std::isnan(value) ? "(nan)" : (value > 0 ? "(inf)" : "(-inf)");
      return;
    }
    // The shortest digits that identify the value: among doubles for f64, among floats for all
    // other types.
    char digits[64];
    const auto end = dtype == DType::kF64
                         ? std::to_chars(digits, digits + sizeof digits, value)
                         : std::to_chars(digits, digits + sizeof digits, static_cast<float>(value));
    std::string text(digits, end.ptr);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    out_ += text;
    if (dtype != DType::kF32) out_ += to_string(dtype);
  }

  void expr(const Expr& e, int strength) {
    visit(overloaded{
              [&](const IntImm& n) { int_literal(e.dtype(), n.value); },
              [&](const FloatImm& n) { float_literal(e.dtype(), n.value); },
              [&](const VarRef& n) { out_ += quote_name(variables_.find(n.var.get(), n.var.name())); },
              [&](const Unary& n) {
                const bool parentheses = strength > kUnaryStrength;
                if (parentheses) out_ += '(';
                out_ += to_string(n.op);
                // -1.0 is a literal, -(1.0) a negation.
                const bool literal = as<FloatImm>(n.a) != nullptr || as<IntImm>(n.a) != nullptr;
                if (literal) out_ += '(';
                expr(n.a, kUnaryStrength);
                if (literal) out_ += ')';
                if (parentheses) out_ += ')';
              },
              [&](const Binary& n) { infix(n, strength); },
              [&](const Select& n) {
                out_ += "select(";
                arguments({n.condition, n.a, n.b});
                out_ += ')';
              },
              [&](const Cast& n) {
                out_ += to_string(e.dtype());
                out_ += '(';
                expr(n.a);
                out_ += ')';
              },
              [&](const Call& n) {
                out_ += to_string(n.intrinsic);
                out_ += '(';
                arguments(n.args);
                out_ += ')';
              },
              [&](const Load& n) { access(n.buffer, n.indices); },
          },
          e);
  }

  void infix(const Binary& n, int strength) {
    if (n.op == BinaryOp::kMin || n.op == BinaryOp::kMax) {
      out_ += to_string(n.op);
      out_ += '(';
      arguments({n.a, n.b});
      out_ += ')';
      return;
    }
    const int own = strength_of(n.op);
    // Chains group to the left; comparisons cannot be chained.
    const int left = is_comparison(n.op) ? own + 1 : own;
    if (own < strength) out_ += '(';
    expr(n.a, left);
    out_ += ' ';
    out_ += to_string(n.op);
    out_ += ' ';
    expr(n.b, own + 1);
    if (own < strength) out_ += ')';
  }

  std::string out_;
  int depth_ = 0;
  Names variables_;
  Names buffers_;
};

}  // namespace

int strength_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::kOr:
      return 10;
    case BinaryOp::kAnd:
      return 20;
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
      return 30;
    case BinaryOp::kBitOr:
      return 40;
    case BinaryOp::kBitXor:
      return 45;
    case BinaryOp::kBitAnd:
      return 50;
    case BinaryOp::kShl:
    case BinaryOp::kShr:
      return 55;
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
      return 60;
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
      return 70;
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      break;
  }
  return kAtomStrength;
}

bool is_plain_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (name.empty() || !letter(name[0])) return false;
  for (char c : name) {
    if (!letter(c) && !(c >= '0' && c <= '9') && c != '.') return false;
  }
  return name != "true" && name != "false" && name != "inf" && name != "nan";
}

std::string quote_name(const std::string& name) {
  if (is_plain_name(name)) return name;
  std::string out = "\"";
  for (char c : name) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(c));
      out += hex;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string print(const Expr& e) {
  if (!e.defined()) return "<undefined>";
  Printer printer;
  printer.expr(e);
  return printer.take();
}

std::string print(const Stmt& s) {
  Printer printer;
  printer.stmt(s);
  return printer.take();
}

std::string print(const Program& program) {
  Printer printer;
  printer.program(program);
  return printer.take();
}

std::string print(const Workload& workload) {
  Printer printer;
  printer.workload(workload);
  return printer.take();
}

}  // namespace tensorsmith::ir

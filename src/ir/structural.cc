#include "ir/structural.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "ir/expr_memo.h"

namespace tensorsmith::ir {

namespace {

// Compares expressions; pairs of shared nodes that were found equal are not compared again.
class Comparison {
 public:
  bool equal(const Expr& a, const Expr& b) {
    if (a.same_as(b)) return true;
    if (!a.defined() || !b.defined() || a.dtype() != b.dtype() || a->kind.index() != b->kind.index())
      return false;
    if (!worth_remembering(a) || !worth_remembering(b)) return equal_nodes(a, b);
    // The first difference ends the comparison, so every pair that was compared before is equal.
    return !compared_.emplace(a.get(), b.get()).second || equal_nodes(a, b);
  }

 private:
  bool equal_nodes(const Expr& a, const Expr& b) {
    return visit(overloaded{
                     [&](const IntImm& n) { return n.value == as<IntImm>(b)->value; },
                     [&](const FloatImm& n) {
                       return std::bit_cast<uint64_t>(n.value) ==
                              std::bit_cast<uint64_t>(as<FloatImm>(b)->value);
                     },
                     [&](const VarRef& n) { return n.var == as<VarRef>(b)->var; },
                     [&](const Unary& n) {
                       const Unary* m = as<Unary>(b);
                       return n.op == m->op && equal(n.a, m->a);
                     },
                     [&](const Binary& n) {
                       const Binary* m = as<Binary>(b);
                       return n.op == m->op && equal(n.a, m->a) && equal(n.b, m->b);
                     },
                     [&](const Select& n) {
                       const Select* m = as<Select>(b);
                       return equal(n.condition, m->condition) && equal(n.a, m->a) && equal(n.b, m->b);
                     },
                     [&](const Cast& n) { return equal(n.a, as<Cast>(b)->a); },
                     [&](const Call& n) {
                       return n.intrinsic == as<Call>(b)->intrinsic && equal_lists(n.args, as<Call>(b)->args);
                     },
                     [&](const Load& n) {
                       return n.buffer == as<Load>(b)->buffer && equal_lists(n.indices, as<Load>(b)->indices);
                     },
                 },
                 a);
  }

  bool equal_lists(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](const Expr& x, const Expr& y) { return equal(x, y); });
  }

  std::set<std::pair<const ExprNode*, const ExprNode*>> compared_;
};

}  // namespace

bool structural_equal(const Expr& a, const Expr& b) { return Comparison().equal(a, b); }

namespace {

// Encodes everything but names as a sequence of words that determines the structure. Variables and
// buffers are numbered in the order of their definition (or first use, if free).
class Encoder {
 public:
  std::vector<uint64_t> take() { return std::move(words_); }

  void workload(const Workload& w) {
    size(w.operations.size());
    for (const OperationRef& op : w.operations) operation(*op);
    size(w.outputs.size());
    for (const Buffer& output : w.outputs) buffer_use(output.get());
  }

  void program(const Program& p) {
    size(p.inputs.size());
    for (const Buffer& b : p.inputs) buffer(b);
    size(p.outputs.size());
    for (const Buffer& b : p.outputs) buffer(b);
    stmt(p.body);
  }

 private:
  void size(size_t n) { words_.push_back(n); }
  void number(int64_t n) { words_.push_back(n); }
  // Enumerators are encoded by their names, so that their order in the headers does not matter.
  void word(std::string_view text) {
    uint64_t h = 0xcbf29ce484222325ULL;
    for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    words_.push_back(h);
  }
  void numbers(const std::vector<int64_t>& list) {
    size(list.size());
    for (int64_t n : list) number(n);
  }

  void id_of(const void* node) { words_.push_back(ids_.emplace(node, ids_.size()).first->second); }
  void define(const void* node) {
    const uint64_t id = defined_++;
    ids_[node] = kDefined + id;
  }

  void buffer(const Buffer& b) {
    define(b.get());
    word(to_string(b->dtype));
    numbers(b->shape);
    numbers(b->strides);
    word(to_string(b->scope));
  }
  void buffer_use(const BufferNode* b) { id_of(b); }

  void axes(const std::vector<Axis>& list) {
    size(list.size());
    for (const Axis& axis : list) {
      define(axis.var.get());
      word(to_string(axis.var.dtype()));
      number(axis.extent);
    }
  }

  void operation(const Operation& op) {
    word(!op.is_placeholder() ? "compute"
         : op.reduced_range   ? "const(reduced_range)"
         : op.is_constant     ? "const"
                              : "input");
    size(op.outputs.size());
    for (const Buffer& output : op.outputs) buffer(output);
    axes(op.spatial);
    axes(op.reduce);
    word(to_string(op.combiner));
    size(op.bodies.size());
    for (const Expr& body : op.bodies) expr(body);
  }

  void stmt(const Stmt& s) {
    if (s == nullptr) {
      // A null statement is a program without effect.
      word("seq");
      return size(0);
    }
    visit(overloaded{
              [&](const For& n) {
                word("for");
                expr(n.extent);
                define(n.var.get());
                word(to_string(n.kind));
                word(to_string(n.thread));
                number(n.auto_unroll_max_step);
                stmt(n.body);
              },
              [&](const Store& n) {
                word("store");
                buffer_use(n.buffer.get());
                exprs(n.indices);
                expr(n.value);
              },
              [&](const IfThenElse& n) {
                word(n.else_body != nullptr ? "if else" : "if");
                expr(n.condition);
                stmt(n.then_body);
                if (n.else_body != nullptr) stmt(n.else_body);
              },
              [&](const Seq& n) {
                word("seq");
                size(n.stmts.size());
                for (const Stmt& child : n.stmts) stmt(child);
              },
              [&](const Allocate& n) {
                word("alloc");
                buffer(n.buffer);
                stmt(n.body);
              },
          },
          s);
  }

  void exprs(const std::vector<Expr>& list) {
    size(list.size());
    for (const Expr& e : list) expr(e);
  }

  void expr(const Expr& e) {
    word(to_string(e.dtype()));
    visit(overloaded{
              [&](const IntImm& n) {
                word("int");
                number(n.value);
              },
              [&](const FloatImm& n) {
                word("float");
                uint64_t bits = 0x7ff8000000000000ULL;
                if (!std::isnan(n.value)) std::memcpy(&bits, &n.value, sizeof bits);
                words_.push_back(bits);
              },
              [&](const VarRef& n) {
                word("var");
                id_of(n.var.get());
              },
              [&](const Unary& n) {
                word("unary");
                word(to_string(n.op));
                expr(n.a);
              },
              [&](const Binary& n) {
                word("binary");
                word(to_string(n.op));
                expr(n.a);
                expr(n.b);
              },
              [&](const Select& n) {
                word("select");
                expr(n.condition);
                expr(n.a);
                expr(n.b);
              },
              [&](const Cast& n) {
                word("cast");
                expr(n.a);
              },
              [&](const Call& n) {
                word("call");
                word(to_string(n.intrinsic));
                exprs(n.args);
              },
              [&](const Load& n) {
                word("load");
                buffer_use(n.buffer.get());
                exprs(n.indices);
              },
          },
          e);
  }

  // Free variables and buffers are numbered from 0, defined ones from here.
  static constexpr uint64_t kDefined = uint64_t{1} << 32;
  std::vector<uint64_t> words_;
  std::unordered_map<const void*, uint64_t> ids_;
  uint64_t defined_ = 0;
};

std::vector<uint64_t> encode(const Workload& workload) {
  Encoder encoder;
  encoder.workload(workload);
  return encoder.take();
}
std::vector<uint64_t> encode(const Program& program) {
  Encoder encoder;
  encoder.program(program);
  return encoder.take();
}

std::string key_of(const std::vector<uint64_t>& words, std::string_view kind) {
  Hasher hasher;
  hasher.add(kind);
  for (uint64_t w : words) hasher.add(w);
  return hasher.hex128();
}

}  // namespace

bool structural_equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return structural_equal(x, y); });
}
bool structural_equal(const Program& a, const Program& b) { return encode(a) == encode(b); }
bool structural_equal(const Workload& a, const Workload& b) { return encode(a) == encode(b); }

std::string structural_key(const Workload& workload) { return key_of(encode(workload), "workload 1"); }
std::string structural_key(const Program& program) { return key_of(encode(program), "program 1"); }

}  // namespace tensorsmith::ir

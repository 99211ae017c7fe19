#include "ir/verify_program.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/expr_memo.h"
#include "ir/parts.h"
#include "ir/simplifier.h"
#include "ir/text.h"

namespace tensorsmith::ir {

namespace {

// The same limit as for the tensors of workloads.
constexpr int64_t kMaxBufferBytes = int64_t{1} << 46;

class ProgramVerifier {
 public:
  explicit ProgramVerifier(bool in_bounds) : in_bounds_(in_bounds), simplifier_(no_bounds_) {}

  Status run(const Program& program) {
    for (const Buffer& buffer : program.inputs) parameter(buffer, Role::kInput);
    for (const Buffer& buffer : program.outputs) parameter(buffer, Role::kOutput);
    stmt(program.body);
    if (error_.has_value()) return *std::move(error_);
    return {};
  }

 private:
  enum class Role : uint8_t { kInput, kOutput, kAllocated };

  void fail(ErrorCode code, const std::string& reason) {
    if (error_.has_value()) return;
    std::string place;
    for (const std::string& step : path_) place += (place.empty() ? "" : " / ") + step;
    error_ = Error{code, place.empty() ? "program" : place, reason};
  }
  void fail(const std::string& reason) { fail(ErrorCode::kInvalidArgument, reason); }

  void parameter(const Buffer& buffer, Role role) {
    if (buffer == nullptr) return fail("a parameter is null");
    check_buffer(*buffer);
    if (!buffers_.emplace(buffer.get(), role).second) fail("'" + buffer->name + "' is a parameter twice");
  }

  void check_buffer(const BufferNode& buffer) {
    for (int64_t extent : buffer.shape) {
      if (extent < 0) return fail("'" + buffer.name + "' has a negative extent");
    }
    for (int64_t stride : buffer.strides) {
      if (stride < 0) return fail("'" + buffer.name + "' has a negative stride");
    }
    if (!buffer.strides.empty() && buffer.strides.size() != buffer.shape.size())
      return fail("'" + buffer.name + "' needs one stride per dimension");
    // The product of the extents bounds the compact strides, too, if an extent is 0.
    int64_t bytes = bytes_of(buffer.dtype);
    bool large = buffer.allocation_elements() > kMaxBufferBytes / bytes;
    for (int64_t extent : buffer.shape)
      large = large || __builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes) ||
              bytes > kMaxBufferBytes;
    if (large) fail("'" + buffer.name + "' is too large");
  }

  void stmt(const Stmt& s) {
    if (s == nullptr || error_.has_value()) return;
    visit(overloaded{
              [&](const For& n) { loop(n); },
              [&](const Store& n) { store(n); },
              [&](const IfThenElse& n) { branch(n); },
              [&](const Seq& n) {
                for (const Stmt& child : n.stmts) stmt(child);
              },
              [&](const Allocate& n) { allocate(n); },
          },
          s);
  }

  void loop(const For& n) {
    const std::string word(n.kind == ForKind::kSerial   ? "for"
                           : n.kind == ForKind::kThread ? to_string(n.thread)
                                                        : to_string(n.kind));
    path_.push_back(word + " " + n.var.name());
    expr(n.extent);
    if (n.extent.dtype() != DType::kI64) fail("the extent is not an i64");
    const auto constant = as_int(n.extent);
    if (n.kind != ForKind::kSerial && !constant.has_value())
      fail("only a serial loop may have a variable extent");
    if (constant.has_value() && *constant < 0) fail("the extent is negative");
    if (vectorized_ && (n.kind == ForKind::kParallel || n.kind == ForKind::kThread))
      fail("a " + word + " loop is inside a vectorized loop");
    if (!variables_.insert(n.var.get()).second) fail("its variable is bound by an enclosing loop already");
    if (error_.has_value()) return;
    const bool outer_vectorized = vectorized_;
    vectorized_ = vectorized_ || n.kind == ForKind::kVectorized;
    bool reached = true;
    const Simplifier::Mark before = simplifier_.mark();
    if (in_bounds_) {
      const Expr extent = simplifier_.simplify(n.extent);
      const Interval count = simplifier_.bounds(extent);
      reached = count.max > 0;
      if (reached) {
        simplifier_.bind(n.var, {0, count.max == Interval::kPosInf ? count.max : count.max - 1});
        if (!constant.has_value())
          simplifier_.assume_during(n.body, binary(BinaryOp::kLt, n.var, extent), true);
      }
    }
    unreached_ += reached ? 0 : 1;
    const size_t checked = checked_.mark();
    stmt(n.body);
    checked_.rollback(checked);
    unreached_ -= reached ? 0 : 1;
    simplifier_.rollback(before);
    vectorized_ = outer_vectorized;
    variables_.erase(n.var.get());
    path_.pop_back();
  }

  void store(const Store& n) {
    path_.push_back("store to " + n.buffer->name);
    access(*n.buffer, n.indices);
    const auto it = buffers_.find(n.buffer.get());
    if (it != buffers_.end() && it->second == Role::kInput) fail("an input is written");
    if (n.value.dtype() != n.buffer->dtype) fail("the value and the buffer have different dtypes");
    expr(n.value);
    if (!error_.has_value()) path_.pop_back();
  }

  void branch(const IfThenElse& n) {
    path_.emplace_back("if");
    expr(n.condition);
    if (n.condition.dtype() != DType::kBool) fail("the condition is not bool");
    if (error_.has_value()) return;
    path_.pop_back();
    under(n.condition, true, [&] { stmt(n.then_body); }, n.then_body);
    under(n.condition, false, [&] { stmt(n.else_body); }, n.else_body);
  }

  void allocate(const Allocate& n) {
    path_.push_back("alloc " + n.buffer->name);
    check_buffer(*n.buffer);
    if (!buffers_.emplace(n.buffer.get(), Role::kAllocated).second) fail("the buffer is declared already");
    if (error_.has_value()) return;
    const size_t checked = checked_.mark();
    stmt(n.body);
    checked_.rollback(checked);
    buffers_.erase(n.buffer.get());
    if (!error_.has_value()) path_.pop_back();
  }

  // Runs fn under the assumption that the condition has the given value; `body` is the statement
  // that fn checks, if it is one.
  template <class Fn>
  void under(const Expr& condition, bool value, const Fn& fn, const Stmt& body = nullptr) {
    if (error_.has_value()) return;
    if (!in_bounds_) return fn();
    const Expr simple = simplifier_.simplify(condition);
    const bool never = is_int_value(simple, value ? 0 : 1);
    const Simplifier::Mark before = simplifier_.mark();
    if (body != nullptr) {
      simplifier_.assume_during(body, simple, value);
    } else {
      simplifier_.assume(simple, value);
    }
    unreached_ += never ? 1 : 0;
    const size_t checked = checked_.mark();
    fn();
    checked_.rollback(checked);
    unreached_ -= never ? 1 : 0;
    simplifier_.rollback(before);
  }

  void expr(const Expr& e) {
    if (error_.has_value()) return;
    if (!e.defined()) return fail("an expression is undefined");
    if (checked_.find(e) != nullptr) return;
    checked_.remember(e, true);
    if (const VarRef* ref = as<VarRef>(e)) {
      if (variables_.count(ref->var.get()) == 0)
        fail("variable '" + ref->var.name() + "' is used outside of its loop");
    } else if (const Select* select = as<Select>(e)) {
      expr(select->condition);
      under(select->condition, true, [&] { expr(select->a); });
      under(select->condition, false, [&] { expr(select->b); });
    } else if (const Load* load = as<Load>(e)) {
      access(*load->buffer, load->indices);
    } else {
      for_each_part(e, [&](const Expr& part) { expr(part); });
    }
  }

  void access(const BufferNode& buffer, const std::vector<Expr>& indices) {
    if (buffers_.count(&buffer) == 0) return fail("buffer '" + buffer.name + "' is not declared here");
    if (indices.size() != buffer.shape.size())
      return fail("'" + buffer.name + "' has another number of dimensions");
    for (size_t d = 0; d < indices.size() && !error_.has_value(); ++d) {
      expr(indices[d]);
      if (!is_int(indices[d].dtype())) return fail("an index of '" + buffer.name + "' is not an integer");
      if (!in_bounds_ || unreached_ > 0 || error_.has_value()) continue;
      const Interval range = simplifier_.bounds(indices[d]);
      if (range.min >= 0 && range.max < buffer.shape[d]) continue;
      const auto shown = [](int64_t v) {
        return v == Interval::kNegInf   ? std::string("-inf")
               : v == Interval::kPosInf ? "inf"
                                        : std::to_string(v);
      };
      fail(ErrorCode::kIllegal, "cannot prove that index " + print(indices[d]) + " of '" + buffer.name +
                                    "' is in [0, " + std::to_string(buffer.shape[d]) + "); its range is [" +
                                    shown(range.min) + ", " + shown(range.max) + "]");
    }
  }

  const bool in_bounds_;
  const VarBounds no_bounds_;
  Simplifier simplifier_;
  std::optional<Error> error_;
  std::vector<std::string> path_;
  std::unordered_map<const BufferNode*, Role> buffers_;
  std::unordered_set<const VarNode*> variables_;
  bool vectorized_ = false;
  int unreached_ = 0;       // number of enclosing scopes that never run
  ExprMemo<bool> checked_;  // expressions that are correct in the present scope
};

}  // namespace

Status verify(const Program& program) { return ProgramVerifier(false).run(program); }
Status verify_in_bounds(const Program& program) { return ProgramVerifier(true).run(program); }

}  // namespace tensorsmith::ir

#include "codegen/widen.h"

#include <unordered_map>
#include <unordered_set>

#include "ir/analysis.h"
#include "ir/parts.h"

namespace tensorsmith::codegen {

namespace {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;

// Returns the moved value e as f32.
Expr widened(const Expr& e) {
  if (const auto* imm = ir::as<ir::FloatImm>(e)) return ir::float_imm(ir::DType::kF32, imm->value);
  const auto* select = ir::as<ir::Select>(e);
  if (select == nullptr) return ir::cast(ir::DType::kF32, e);
  return ir::select(select->condition, widened(select->a), widened(select->b));
}

class Widening {
 public:
  explicit Widening(const Stmt& body) {
    ir::for_each_stmt(body, [&](const Stmt& s) {
      const auto* allocate = ir::as<ir::Allocate>(s);
      if (allocate == nullptr || !ir::is_short_float(allocate->buffer->dtype)) return;
      const Buffer& b = allocate->buffer;
      wide_.emplace(b.get(), ir::make_buffer(b->name, ir::DType::kF32, b->shape, b->scope, b->strides));
    });
    if (!any()) return;
    std::unordered_set<const ir::BufferNode*> refused;
    const auto refuse_reads = [&](const Expr& e) {
      for (const ir::Load* load : ir::loads_of(read(e)))
        if (ir::is_short_float(load->buffer->dtype)) refused.insert(load->buffer.get());
    };
    ir::for_each_stmt(body, [&](const Stmt& s) {
      const auto* store = ir::as<ir::Store>(s);
      if (store != nullptr && !ir::only_moves(store->value)) refused.insert(store->buffer.get());
      ir::for_each_own_expr(s, refuse_reads);
    });
    for (const ir::BufferNode* b : refused) wide_.erase(b);
  }

  bool any() const { return !wide_.empty(); }

  Stmt rewrite(const Stmt& s) const {
    if (const auto* allocate = ir::as<ir::Allocate>(s)) {
      const Buffer buffer = wide(allocate->buffer);
      return ir::make_allocate(buffer != nullptr ? buffer : allocate->buffer, rewrite(allocate->body));
    }
    if (const auto* store = ir::as<ir::Store>(s)) {
      const Buffer buffer = wide(store->buffer);
      return buffer == nullptr ? s : ir::make_store(buffer, store->indices, widened(store->value));
    }
    return ir::map_parts(s, [this](const Stmt& part) { return rewrite(part); });
  }

  Expr read(const Expr& e) const {
    return ir::rewrite(e, [this](const Expr& part) {
      const ir::Load* load = ir::converted_load(part, ir::DType::kF32);
      const Buffer buffer = load == nullptr ? nullptr : wide(load->buffer);
      return buffer == nullptr ? part : ir::load(buffer, load->indices);
    });
  }

 private:
  Buffer wide(const Buffer& buffer) const {
    const auto found = wide_.find(buffer.get());
    return found == wide_.end() ? nullptr : found->second;
  }

  std::unordered_map<const ir::BufferNode*, Buffer> wide_;
};

}  // namespace

ir::Program widen_copies(const ir::Program& program) {
  const Widening widening(program.body);
  if (!widening.any()) return program;
  ir::Program result = program;
  result.body =
      ir::rewrite_exprs(widening.rewrite(program.body), [&](const Expr& e) { return widening.read(e); });
  return result;
}

}  // namespace tensorsmith::codegen

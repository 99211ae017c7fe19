#include "codegen/gpu/virtual_threads.h"

#include <functional>
#include <unordered_set>
#include <utility>

#include "ir/analysis.h"
#include "ir/parts.h"

namespace tensorsmith::codegen {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;

namespace {

// Pushes one loop over virtual threads inwards, the innermost that is left.
class Pusher {
 public:
  Pusher(GpuKernel& kernel, const ir::For& loop) : kernel_(kernel), loop_(loop) {
    extent_ = ir::as_int(loop.extent).value_or(1);
    find_copied();
  }

  Stmt run() { return push(loop_.body); }
  const Status& status() const { return status_; }

 private:
  bool differs(const Expr& e) const {
    if (ir::uses_var(e, loop_.var)) return true;
    for (const ir::Load* load : ir::loads_of(e))
      if (copied_.contains(load->buffer.get())) return true;
    return false;
  }

  // Returns whether the statement itself, without those inside it, differs between virtual threads.
  bool differs_itself(const Stmt& s) const {
    const auto* store = ir::as<ir::Store>(s);
    bool found = store != nullptr && copied_.contains(store->buffer.get());
    ir::for_each_own_expr(s, [&](const Expr& e) { found = found || differs(e); });
    return found;
  }

  // Returns whether the statement, or one inside it, differs between virtual threads.
  bool differs(const Stmt& s) const {
    bool found = false;
    ir::for_each_stmt(s, [&](const Stmt& inner) { found = found || differs_itself(inner); });
    return found;
  }

  // Finds the private buffers that are allocated inside the loop and hold values that differ
  // between virtual threads.
  void find_copied() {
    std::unordered_set<const ir::BufferNode*> inside;
    ir::for_each_stmt(loop_.body, [&](const Stmt& s) {
      if (const auto* allocate = ir::as<ir::Allocate>(s)) inside.insert(allocate->buffer.get());
    });
    size_t before = 0;
    do {
      before = copied_.size();
      mark(loop_.body, inside, false);
    } while (copied_.size() != before);
  }

  void mark(const Stmt& s, const std::unordered_set<const ir::BufferNode*>& inside, bool under) {
    under = under || differs_itself(s);
    if (const auto* store = ir::as<ir::Store>(s); store != nullptr && under) {
      const bool is_private = kernel_.memory_of(store->buffer.get()) == GpuMemory::kPrivate;
      if (is_private && inside.contains(store->buffer.get())) copied_.insert(store->buffer.get());
    }
    ir::for_each_part(s, [&](const Stmt& part) { mark(part, inside, under); });
  }

  Stmt push(const Stmt& s) {
    // Vectorized loops are repeated as a whole.
    const auto* loop = ir::as<ir::For>(s);
    const bool vector = loop != nullptr && loop->kind == ir::ForKind::kVectorized && differs(loop->body);
    if (vector || differs_itself(s)) return repeat(s);
    const Stmt pushed = ir::map_parts(s, [this](const Stmt& part) { return push(part); });
    return with_copied_allocation(pushed);
  }

  // Returns an allocation of a copied buffer as an allocation of its copies.
  Stmt with_copied_allocation(const Stmt& s) {
    const auto* allocate = ir::as<ir::Allocate>(s);
    if (allocate == nullptr || !copied_.contains(allocate->buffer.get())) return s;
    return ir::make_allocate(copy_of(allocate->buffer), allocate->body);
  }

  // Repeats the statement for each virtual thread.
  Stmt repeat(const Stmt& s) {
    ir::for_each_stmt(s, [&](const Stmt& inner) {
      const auto* store = ir::as<ir::Store>(inner);
      if (store != nullptr && kernel_.memory_of(store->buffer.get()) == GpuMemory::kShared) {
        status_ =
            Error{ErrorCode::kUnsupported, "buffer " + store->buffer->name,
                  "is shared by a block, but a statement that is repeated for each virtual thread writes it"};
      }
    });
    ir::For loop;
    loop.var = ir::Var(loop_.var.name());
    loop.extent = loop_.extent;
    loop.kind = ir::ForKind::kUnrolled;
    loop.body = with_copies(ir::substitute(s, {{loop_.var.get(), Expr(loop.var)}}), loop.var);
    return ir::make_for(std::move(loop));
  }

  // Replaces buffers by the virtual thread's own copies. A buffer that lives only inside the statement needs
  // just one copy.
  Stmt with_copies(const Stmt& s, const ir::Var& thread) {
    const auto value = [&](const Expr& e) {
      return ir::rewrite(e, [&](const Expr& x) -> Expr {
        const auto* load = ir::as<ir::Load>(x);
        if (load == nullptr || !copied_.contains(load->buffer.get())) return x;
        return ir::load(copy_of(load->buffer), with_thread(load->indices, thread));
      });
    };
    const std::function<Stmt(const Stmt&)> with_stores = [&](const Stmt& part) -> Stmt {
      const auto* store = ir::as<ir::Store>(part);
      if (store != nullptr && copied_.contains(store->buffer.get()))
        return ir::make_store(copy_of(store->buffer), with_thread(store->indices, thread), store->value);
      return with_copied_allocation(ir::map_parts(part, with_stores));
    };
    return with_stores(ir::rewrite_exprs(s, value));
  }

  static std::vector<Expr> with_thread(std::vector<Expr> indices, const ir::Var& thread) {
    indices.insert(indices.begin(), Expr(thread));
    return indices;
  }

  const Buffer& copy_of(const Buffer& buffer) {
    Buffer& copy = copies_[buffer.get()];
    if (copy == nullptr) {
      std::vector<int64_t> shape = buffer->shape, strides = buffer->strides;
      shape.insert(shape.begin(), extent_);
      if (!strides.empty()) strides.insert(strides.begin(), buffer->allocation_elements());
      copy =
          ir::make_buffer(buffer->name, buffer->dtype, std::move(shape), buffer->scope, std::move(strides));
      kernel_.memory[copy.get()] = GpuMemory::kPrivate;
    }
    return copy;
  }

  GpuKernel& kernel_;
  const ir::For& loop_;
  int64_t extent_ = 1;
  std::unordered_set<const ir::BufferNode*> copied_;
  std::unordered_map<const ir::BufferNode*, Buffer> copies_;
  Status status_;
};

// Pushes all loops over virtual threads inwards, inner loops first.
Stmt push_all(GpuKernel& kernel, const Stmt& s, Status& status) {
  const Stmt pushed = ir::map_parts(s, [&](const Stmt& part) { return push_all(kernel, part, status); });
  const auto* loop = ir::as<ir::For>(pushed);
  if (loop == nullptr || loop->kind != ir::ForKind::kThread) return pushed;
  Pusher pusher(kernel, *loop);
  Stmt body = pusher.run();
  if (!pusher.status().ok()) status = pusher.status();
  return body;
}

}  // namespace

Status push_virtual_threads(GpuKernel& kernel) {
  Status status;
  kernel.body = push_all(kernel, kernel.body, status);
  return status;
}

}  // namespace tensorsmith::codegen

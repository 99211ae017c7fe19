#include "codegen/gpu/virtual_threads.h"

#include <unordered_set>
#include <utility>

#include "ir/analysis.h"

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

  bool differs(const ir::Store& store) const {
    if (copied_.contains(store.buffer.get()) || differs(store.value)) return true;
    for (const Expr& i : store.indices)
      if (differs(i)) return true;
    return false;
  }

  // Returns whether the statement, or a condition or extent in it, differs between virtual threads.
  bool differs(const Stmt& s) const {
    bool found = false;
    ir::for_each_stmt(s, [&](const Stmt& inner) {
      if (const auto* store = ir::as<ir::Store>(inner)) {
        found = found || differs(*store);
      } else if (const auto* branch = ir::as<ir::IfThenElse>(inner)) {
        found = found || differs(branch->condition);
      } else if (const auto* loop = ir::as<ir::For>(inner)) {
        found = found || differs(loop->extent);
      }
    });
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
    if (s == nullptr) return;
    ir::visit(ir::overloaded{
                  [&](const ir::For& loop) { mark(loop.body, inside, under || differs(loop.extent)); },
                  [&](const ir::Store& store) {
                    const bool is_private = kernel_.memory.contains(store.buffer.get()) &&
                                            kernel_.memory.at(store.buffer.get()) == GpuMemory::kPrivate;
                    if (is_private && inside.contains(store.buffer.get()) && (under || differs(store)))
                      copied_.insert(store.buffer.get());
                  },
                  [&](const ir::IfThenElse& branch) {
                    const bool now = under || differs(branch.condition);
                    mark(branch.then_body, inside, now);
                    mark(branch.else_body, inside, now);
                  },
                  [&](const ir::Seq& seq) {
                    for (const Stmt& part : seq.stmts) mark(part, inside, under);
                  },
                  [&](const ir::Allocate& allocate) { mark(allocate.body, inside, under); },
              },
              s);
  }

  Stmt push(const Stmt& s) {
    if (s == nullptr) return nullptr;
    return ir::visit(
        ir::overloaded{
            [&](const ir::For& loop) {
              // Vectorized loops are repeated as a whole.
              const bool vector = loop.kind == ir::ForKind::kVectorized && differs(loop.body);
              if (vector || differs(loop.extent)) return repeat(s);
              ir::For out = loop;
              out.body = push(loop.body);
              return ir::make_for(std::move(out));
            },
            [&](const ir::Store& store) { return differs(store) ? repeat(s) : s; },
            [&](const ir::IfThenElse& branch) {
              if (differs(branch.condition)) return repeat(s);
              return ir::make_if(branch.condition, push(branch.then_body), push(branch.else_body));
            },
            [&](const ir::Seq& seq) {
              std::vector<Stmt> list;
              for (const Stmt& part : seq.stmts) list.push_back(push(part));
              return ir::make_seq(std::move(list));
            },
            [&](const ir::Allocate& allocate) {
              Stmt body = push(allocate.body);
              return ir::make_allocate(
                  copied_.contains(allocate.buffer.get()) ? copy_of(allocate.buffer) : allocate.buffer,
                  std::move(body));
            },
        },
        s);
  }

  // Repeats the statement for each virtual thread.
  Stmt repeat(const Stmt& s) {
    ir::for_each_stmt(s, [&](const Stmt& inner) {
      const auto* store = ir::as<ir::Store>(inner);
      if (store == nullptr) return;
      const auto memory = kernel_.memory.find(store->buffer.get());
      if (memory != kernel_.memory.end() && memory->second == GpuMemory::kShared) {
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

  // Replaces buffers by the virtual thread's own copies.
  Stmt with_copies(const Stmt& s, const ir::Var& thread) {
    if (s == nullptr) return nullptr;
    const auto value = [&](const Expr& e) {
      return ir::rewrite(e, [&](const Expr& x) -> Expr {
        const auto* load = ir::as<ir::Load>(x);
        if (load == nullptr || !copied_.contains(load->buffer.get())) return x;
        return ir::load(copy_of(load->buffer), with_thread(load->indices, thread));
      });
    };
    return ir::visit(
        ir::overloaded{
            [&](const ir::For& loop) {
              ir::For out = loop;
              out.extent = value(loop.extent);
              out.body = with_copies(loop.body, thread);
              return ir::make_for(std::move(out));
            },
            [&](const ir::Store& store) {
              std::vector<Expr> indices;
              for (const Expr& i : store.indices) indices.push_back(value(i));
              if (!copied_.contains(store.buffer.get()))
                return ir::make_store(store.buffer, std::move(indices), value(store.value));
              return ir::make_store(copy_of(store.buffer), with_thread(indices, thread), value(store.value));
            },
            [&](const ir::IfThenElse& branch) {
              return ir::make_if(value(branch.condition), with_copies(branch.then_body, thread),
                                 with_copies(branch.else_body, thread));
            },
            [&](const ir::Seq& seq) {
              std::vector<Stmt> list;
              for (const Stmt& part : seq.stmts) list.push_back(with_copies(part, thread));
              return ir::make_seq(std::move(list));
            },
            [&](const ir::Allocate& allocate) {
              // A buffer that lives only inside the statement needs just one copy.
              return ir::make_allocate(
                  copied_.contains(allocate.buffer.get()) ? copy_of(allocate.buffer) : allocate.buffer,
                  with_copies(allocate.body, thread));
            },
        },
        s);
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
  if (s == nullptr) return nullptr;
  return ir::visit(ir::overloaded{
                       [&](const ir::For& loop) {
                         ir::For out = loop;
                         out.body = push_all(kernel, loop.body, status);
                         if (loop.kind != ir::ForKind::kThread) return ir::make_for(std::move(out));
                         Pusher pusher(kernel, out);
                         Stmt body = pusher.run();
                         if (!pusher.status().ok()) status = pusher.status();
                         return body;
                       },
                       [&](const ir::Store&) { return s; },
                       [&](const ir::IfThenElse& branch) {
                         return ir::make_if(branch.condition, push_all(kernel, branch.then_body, status),
                                            push_all(kernel, branch.else_body, status));
                       },
                       [&](const ir::Seq& seq) {
                         std::vector<Stmt> list;
                         for (const Stmt& part : seq.stmts) list.push_back(push_all(kernel, part, status));
                         return ir::make_seq(std::move(list));
                       },
                       [&](const ir::Allocate& allocate) {
                         return ir::make_allocate(allocate.buffer, push_all(kernel, allocate.body, status));
                       },
                   },
                   s);
}

}  // namespace

Status push_virtual_threads(GpuKernel& kernel) {
  Status status;
  kernel.body = push_all(kernel, kernel.body, status);
  return status;
}

}  // namespace tensorsmith::codegen

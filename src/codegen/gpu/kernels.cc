#include "codegen/gpu/kernels.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/launch.h"
#include "ir/analysis.h"
#include "ir/parts.h"
#include "runtime/device/gpu.h"

namespace tensorsmith::codegen {

using ir::Expr;
using ir::Stmt;

namespace {

constexpr std::array<const char*, kGpuAxes> kIndexNames = {"block_x",  "block_y",  "block_z",
                                                           "thread_x", "thread_y", "thread_z"};

std::optional<GpuAxis> axis_of(const ir::For& loop) {
  if (loop.kind != ir::ForKind::kThread) return std::nullopt;
  switch (loop.thread) {
    case ir::ThreadAxis::kBlockX:
      return kBlockX;
    case ir::ThreadAxis::kBlockY:
      return kBlockY;
    case ir::ThreadAxis::kBlockZ:
      return kBlockZ;
    case ir::ThreadAxis::kThreadX:
      return kThreadX;
    case ir::ThreadAxis::kThreadY:
      return kThreadY;
    case ir::ThreadAxis::kThreadZ:
      return kThreadZ;
    case ir::ThreadAxis::kNone:
    case ir::ThreadAxis::kVirtual:
      return std::nullopt;
  }
  return std::nullopt;
}

Error unsupported(const std::string& place, std::string reason) {
  return {ErrorCode::kUnsupported, place, std::move(reason)};
}

using Axes = unsigned;  // one bit per GpuAxis
constexpr Axes bit(size_t axis) { return 1U << axis; }
constexpr Axes kThreads = bit(kThreadX) | bit(kThreadY) | bit(kThreadZ);

// Turns one loop nest into the code of one thread.
class KernelMaker {
 public:
  Result<GpuKernel> make(const Stmt& nest) {
    TS_RETURN_IF_ERROR(find_extents(nest));
    for (size_t axis = 0; axis < kGpuAxes; ++axis) kernel_.index[axis] = ir::Var(kIndexNames[axis]);
    kernel_.body = rewrite(nest);
    if (!status_.ok()) return status_.error();
    return std::move(kernel_);
  }

 private:
  Status find_extents(const Stmt& nest) {
    Status status;
    ir::for_each_stmt(nest, [&](const Stmt& s) {
      const auto* loop = ir::as<ir::For>(s);
      if (loop == nullptr) return;
      const auto axis = axis_of(*loop);
      if (!axis) return;
      const auto extent = ir::as_int(loop->extent);
      if (!extent) {
        status =
            unsupported("loop " + loop->var.name(), "is bound to a GPU axis, but its extent is not constant");
        return;
      }
      kernel_.extents[*axis] = std::max(kernel_.extents[*axis], *extent);
      used_ |= bit(*axis);
    });
    return status;
  }

  Expr here(const Expr& e) const { return ir::substitute(e, bindings_); }

  Stmt rewrite(const Stmt& s) {
    if (s == nullptr) return nullptr;
    return ir::visit(ir::overloaded{
                         [&](const ir::For& loop) { return rewrite_loop(loop); },
                         [&](const ir::Store& store) { return rewrite_store(store); },
                         [&](const ir::IfThenElse& branch) {
                           return ir::make_if(here(branch.condition), rewrite(branch.then_body),
                                              rewrite(branch.else_body));
                         },
                         [&](const ir::Seq&) {
                           return ir::map_parts(s, [this](const Stmt& part) { return rewrite(part); });
                         },
                         [&](const ir::Allocate& allocate) { return rewrite_allocate(allocate); },
                     },
                     s);
  }

  Stmt rewrite_loop(const ir::For& loop) {
    const auto axis = axis_of(loop);
    if (!axis) {
      ir::For out = loop;
      out.extent = here(loop.extent);
      out.body = rewrite(loop.body);
      return ir::make_for(std::move(out));
    }
    const int64_t threads = kernel_.extents[*axis], needed = ir::as_int(loop.extent).value_or(threads);
    const Expr index = kernel_.index[*axis];
    bindings_[loop.var.get()] = threads == 1 ? Expr(0) : index;
    const Axes outside = std::exchange(bound_, bound_ | bit(*axis));
    Stmt body = rewrite(loop.body);
    bound_ = outside;
    return needed < threads ? ir::make_if(index < Expr(needed), std::move(body)) : body;
  }

  Stmt rewrite_allocate(const ir::Allocate& allocate) {
    const ir::Buffer& buffer = allocate.buffer;
    const bool by_all = (used_ & kThreads & ~bound_) == 0;
    const bool shared =
        buffer->scope == ir::MemoryScope::kShared || (buffer->scope == ir::MemoryScope::kGlobal && !by_all);
    kernel_.memory[buffer.get()] = shared ? GpuMemory::kShared : GpuMemory::kPrivate;
    if (shared) kernel_.shared.push_back(buffer);
    bound_at_[buffer.get()] = bound_;
    return ir::make_allocate(buffer, rewrite(allocate.body));
  }

  Stmt rewrite_store(const ir::Store& store) {
    std::vector<Expr> indices;
    for (const Expr& i : store.indices) indices.push_back(here(i));
    const GpuMemory memory = kernel_.memory_of(store.buffer.get());
    const bool is_private = memory == GpuMemory::kPrivate;
    if (is_private && (bound_ & ~bound_at_.at(store.buffer.get()) & kThreads) != 0) {
      status_ = unsupported("buffer " + store.buffer->name,
                            "is private to a thread, but a loop over threads inside its scope writes it");
    }
    Stmt out = ir::make_store(store.buffer, std::move(indices), here(store.value));
    if (is_private) return out;
    Expr first;
    for (size_t axis = 0; axis < kGpuAxes; ++axis) {
      if (kernel_.extents[axis] == 1 || (bound_ & bit(axis)) != 0) continue;
      // Each block has its own shared memory, so the block's index does not matter for it.
      if (axis < kThreadX && memory != GpuMemory::kDevice) continue;
      const Expr is_first = Expr(kernel_.index[axis]) == Expr(0);
      first = first.defined() ? first && is_first : is_first;
    }
    return first.defined() ? ir::make_if(first, std::move(out)) : out;
  }

  GpuKernel kernel_;
  Status status_;
  Axes used_ = 0;   // axes of all loops of the kernel
  Axes bound_ = 0;  // axes of the enclosing loops
  ir::VarMap bindings_;
  std::unordered_map<const ir::BufferNode*, Axes> bound_at_;  // axes that were bound at each
                                                              // allocation of the kernel
};

// Rounds up to an offset at which a part of the workspace may begin on every device.
constexpr int64_t aligned_for_gpu(int64_t bytes) {
  constexpr int64_t kAlignment = runtime::kGpuOffsetAlignment;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Visits the statements outside of all kernels.
class Splitter {
 public:
  Result<GpuProgram> split(const ir::Program& program) {
    TS_RETURN_IF_ERROR(walk(program.body));
    return std::move(out_);
  }

 private:
  Status walk(const Stmt& s) {
    if (s == nullptr) return {};
    if (const auto* seq = ir::as<ir::Seq>(s)) {
      for (const Stmt& part : seq->stmts) TS_RETURN_IF_ERROR(walk(part));
      return {};
    }
    if (const auto* allocate = ir::as<ir::Allocate>(s)) {
      const int64_t bytes =
          aligned_for_gpu(ir::bytes_of(allocate->buffer->dtype, allocate->buffer->allocation_elements()));
      out_.workspace.push_back({allocate->buffer, used_});
      used_ += bytes;
      out_.workspace_bytes = std::max(out_.workspace_bytes, used_);
      TS_RETURN_IF_ERROR(walk(allocate->body));
      used_ -= bytes;
      return {};
    }
    TS_ASSIGN_OR_RETURN(GpuKernel kernel, KernelMaker().make(s));
    out_.kernels.push_back(std::move(kernel));
    return {};
  }

  GpuProgram out_;
  int64_t used_ = 0;  // bytes of the workspace in use at this place
};

}  // namespace

Result<GpuProgram> split_kernels(const ir::Program& program) { return Splitter().split(program); }

}  // namespace tensorsmith::codegen

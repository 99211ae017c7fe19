#include "gpu_program.h"

#include <algorithm>
#include <map>

#include "ir/analysis.h"

namespace tensorsmith::test {

namespace {

bool is_thread(ir::ThreadAxis axis) {
  return axis == ir::ThreadAxis::kThreadX || axis == ir::ThreadAxis::kThreadY ||
         axis == ir::ThreadAxis::kThreadZ || axis == ir::ThreadAxis::kVirtual;
}

class Checker {
 public:
  std::string run(const ir::Stmt& s) {
    walk(s);
    return broken_;
  }

 private:
  struct Shared {
    const ir::BufferNode* buffer;
    size_t threads;  // number of thread loops around its allocation
  };

  bool depends_on_threads(const ir::Expr& e, size_t count) const {
    return std::any_of(threads_.begin(), threads_.begin() + static_cast<std::ptrdiff_t>(count),
                       [&](const ir::Var& v) { return ir::uses_var(e, v); });
  }

  void fail(const std::string& what) {
    if (broken_.empty()) broken_ = what;
  }

  void walk(const ir::Stmt& s) {
    if (s == nullptr) return;
    ir::visit(ir::overloaded{
                  [&](const ir::For& loop) { walk_loop(loop); },
                  [&](const ir::IfThenElse& i) {
                    conditions_.push_back(i.condition);
                    walk(i.then_body);
                    walk(i.else_body);
                    conditions_.pop_back();
                  },
                  [&](const ir::Seq& seq) {
                    for (const auto& part : seq.stmts) walk(part);
                  },
                  [&](const ir::Allocate& a) { walk_allocate(a); },
                  [&](const ir::Store& store) { check_store(store); },
              },
              s);
  }

  void walk_loop(const ir::For& loop) {
    const bool thread = loop.kind == ir::ForKind::kThread;
    const bool kernel = thread && !inside_kernel_;
    if (kernel) {
      inside_kernel_ = true;
      extents_.clear();
    }
    if (thread) {
      const auto* extent = ir::as<ir::IntImm>(loop.extent);
      if (extent == nullptr)
        fail("a bound loop of varying extent");
      else if (const auto [it, added] = extents_.emplace(loop.thread, extent->value);
               !added && it->second != extent->value && loop.thread != ir::ThreadAxis::kVirtual)
        fail("two extents of " + std::string(ir::to_string(loop.thread)));
    }
    const bool counted = thread && is_thread(loop.thread);
    if (counted) threads_.push_back(loop.var);
    conditions_.push_back(loop.extent);
    walk(loop.body);
    conditions_.pop_back();
    if (counted) threads_.pop_back();
    if (kernel) inside_kernel_ = false;
  }

  void walk_allocate(const ir::Allocate& a) {
    if (a.buffer->scope != ir::MemoryScope::kShared) return walk(a.body);
    for (const auto& condition : conditions_)
      if (depends_on_threads(condition, threads_.size()))
        fail("not all threads reach the allocation of " + a.buffer->name);
    shared_.push_back({a.buffer.get(), threads_.size()});
    const size_t conditions = conditions_.size();
    walk(a.body);
    conditions_.resize(conditions);
    shared_.pop_back();
  }

  void check_store(const ir::Store& store) {
    for (const Shared& shared : shared_) {
      if (shared.buffer != store.buffer.get()) continue;
      bool outer = depends_on_threads(store.value, shared.threads);
      for (const auto& index : store.indices) outer = outer || depends_on_threads(index, shared.threads);
      for (const auto& condition : conditions_)
        outer = outer || depends_on_threads(condition, shared.threads);
      if (outer) fail(store.buffer->name + " depends on the thread that needs it");
    }
  }

  std::vector<ir::Var> threads_;
  std::vector<ir::Expr> conditions_;  // conditions and extents around the present statement
  std::vector<Shared> shared_;
  std::map<ir::ThreadAxis, int64_t> extents_;
  bool inside_kernel_ = false;
  std::string broken_;
};

}  // namespace

std::string broken_gpu_rule(const ir::Program& program) { return Checker().run(program.body); }

}  // namespace tensorsmith::test

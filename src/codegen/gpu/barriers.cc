#include "codegen/gpu/barriers.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/analysis.h"
#include "ir/parts.h"

namespace tensorsmith::codegen {

using ir::Expr;
using ir::Stmt;

namespace {

// The accesses of a piece of code to a shared buffer.
struct Touch {
  bool reads = false, writes = false;
  // For each dimension, the thread axis whose index is the subscript in all accesses, or kGpuAxes
  // if there is none. Threads that differ on that axis access different elements.
  std::vector<size_t> axes;
};
using Touches = std::map<const ir::BufferNode*, Touch>;

void add(Touch& to, const Touch& other) {
  if (!to.reads && !to.writes) to.axes = other.axes;
  to.reads = to.reads || other.reads;
  to.writes = to.writes || other.writes;
  for (size_t d = 0; d < to.axes.size(); ++d)
    if (to.axes[d] != other.axes[d]) to.axes[d] = kGpuAxes;
}

void add(Touches& to, const Touches& other) {
  for (const auto& [buffer, t] : other) add(to[buffer], t);
}

class BarrierPlacer {
 public:
  explicit BarrierPlacer(const GpuKernel& kernel) : kernel_(kernel) {}

  Result<std::unordered_set<const ir::StmtNode*>> place() {
    Touches since;
    visit(kernel_.body, since, true);
    if (!status_.ok()) return status_.error();
    return std::move(before_);
  }

 private:
  bool is_shared(const ir::Buffer& buffer) const {
    return kernel_.memory_of(buffer.get()) == GpuMemory::kShared;
  }

  bool depends_on_thread(const Expr& e) const {
    for (const size_t axis : {kThreadX, kThreadY, kThreadZ})
      if (kernel_.extents[axis] > 1 && ir::uses_var(e, kernel_.index[axis])) return true;
    return !ir::loads_of(e).empty();  // a loaded value may differ between threads
  }

  Touch access(const std::vector<Expr>& indices, bool writes) const {
    Touch t;
    (writes ? t.writes : t.reads) = true;
    for (const Expr& i : indices) {
      const auto* ref = ir::as<ir::VarRef>(i);
      size_t axis = kThreadX;
      while (axis < kGpuAxes && (ref == nullptr || !(ref->var == kernel_.index[axis]))) ++axis;
      t.axes.push_back(axis);
    }
    return t;
  }

  void touches_of(const Expr& e, Touches& out) const {
    for (const ir::Load* load : ir::loads_of(e))
      if (is_shared(load->buffer)) add(out[load->buffer.get()], access(load->indices, false));
  }

  Touches touches_of(const Stmt& s) const {
    Touches out;
    ir::for_each_stmt(s, [&](const Stmt& inner) {
      ir::for_each_own_expr(inner, [&](const Expr& e) { touches_of(e, out); });
      const auto* store = ir::as<ir::Store>(inner);
      if (store != nullptr && is_shared(store->buffer))
        add(out[store->buffer.get()], access(store->indices, true));
    });
    return out;
  }

  // Returns whether each element is accessed by only one thread.
  bool of_one_thread(const Touch& t) const {
    for (const size_t axis : {kThreadX, kThreadY, kThreadZ}) {
      if (kernel_.extents[axis] > 1 && std::find(t.axes.begin(), t.axes.end(), axis) == t.axes.end())
        return false;
    }
    return true;
  }

  // Returns whether the threads must synchronize between two pieces of code.
  bool conflict(const Touches& earlier, const Touches& later) const {
    for (const auto& [buffer, t] : later) {
      const auto it = earlier.find(buffer);
      if (it == earlier.end() || (!t.writes && !it->second.writes)) continue;
      Touch both = it->second;
      add(both, t);
      if (!of_one_thread(both)) return true;
    }
    return false;
  }

  // Returns whether a thread may read an element that another thread writes within the same code.
  bool meets_inside(const Touches& touches) const {
    for (const auto& [buffer, t] : touches)
      if (t.reads && t.writes && !of_one_thread(t)) return true;
    return false;
  }

  void meet_before(const Stmt& s, Touches& since, bool all_come) {
    if (!all_come) {
      status_ = Error{ErrorCode::kUnsupported, "kernel",
                      "cannot place a barrier: an access to a shared buffer is inside a condition that is "
                      "not the same for all threads"};
    }
    before_.insert(s.get());
    since.clear();
  }

  // Visits s. `since` holds the accesses since the last barrier, and is updated. `all_come` says
  // whether all threads of the block reach s.
  void visit(const Stmt& s, Touches& since, bool all_come) {
    if (s == nullptr || !status_.ok()) return;
    const Touches touches = touches_of(s);
    if (!meets_inside(touches) || ir::as<ir::Store>(s) != nullptr) {
      if (conflict(since, touches)) meet_before(s, since, all_come);
      add(since, touches);
      return;
    }
    ir::visit(ir::overloaded{
                  [&](const ir::For& loop) {
                    const bool come = all_come && !depends_on_thread(loop.extent);
                    // The second visit starts with the accesses that the iteration before has left.
                    visit(loop.body, since, come);
                    Touches again = since;
                    visit(loop.body, again, come);
                    add(since, again);
                  },
                  [&](const ir::Store&) {},
                  [&](const ir::IfThenElse& branch) {
                    const bool come = all_come && !depends_on_thread(branch.condition);
                    Touches other = since;
                    visit(branch.then_body, since, come);
                    visit(branch.else_body, other, come);
                    add(since, other);
                  },
                  [&](const ir::Seq& seq) {
                    for (const Stmt& part : seq.stmts) visit(part, since, all_come);
                  },
                  [&](const ir::Allocate& allocate) { visit(allocate.body, since, all_come); },
              },
              s);
  }

  const GpuKernel& kernel_;
  std::unordered_set<const ir::StmtNode*> before_;
  Status status_;
};

}  // namespace

Result<std::unordered_set<const ir::StmtNode*>> place_barriers(const GpuKernel& kernel) {
  int64_t threads = 1;
  for (const size_t axis : {kThreadX, kThreadY, kThreadZ}) threads *= kernel.extents[axis];
  if (threads == 1) return std::unordered_set<const ir::StmtNode*>{};
  return BarrierPlacer(kernel).place();
}

}  // namespace tensorsmith::codegen

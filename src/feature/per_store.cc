// Per-store features of a loop program.
#include "feature/per_store.h"

#include <algorithm>

#include "feature/store_collector.h"
#include "feature/value_ops.h"

namespace tensorsmith::feature {

namespace {

class ProgramWalker {
 public:
  explicit ProgramWalker(const PerStoreOptions& options) : collector_(options) {}

  FeatureMatrix run(const ir::Program& program) {
    visit(*program.body);
    // Outputs are allocated outside of all loops.
    for (const ir::Buffer& output : program.outputs) allocation(*output);
    return collector_.finish();
  }

 private:
  StoredBufferId id_of(const ir::BufferNode& buffer) {
    return collector_.buffer(&buffer, buffer.shape, buffer.strides);
  }
  void allocation(const ir::BufferNode& buffer) {
    collector_.allocation(id_of(buffer), buffer.num_elements());
  }

  void visit(const ir::StmtNode& stmt) {
    std::visit(ir::overloaded{
                   [&](const ir::For& loop) {
                     FormArena& forms = collector_.forms();
                     // An extent that depends on outer loops counts with its largest value.
                     const int64_t extent =
                         std::max<int64_t>(forms.range(forms.of(loop.extent, bindings_)).max, 0);
                     const Form var =
                         collector_.enter_loop(loop.kind, loop.thread, extent, loop.auto_unroll_max_step);
                     bindings_.emplace_back(loop.var.get(), var);
                     visit(*loop.body);
                     bindings_.pop_back();
                     collector_.leave_loop();
                   },
                   [&](const ir::Store& store) { visit_store(store); },
                   [&](const ir::IfThenElse& branch) {
                     visit(*branch.then_body);
                     if (branch.else_body) visit(*branch.else_body);
                   },
                   [&](const ir::Seq& seq) {
                     for (const ir::Stmt& s : seq.stmts) visit(*s);
                   },
                   [&](const ir::Allocate& allocate) {
                     visit(*allocate.body);
                     allocation(*allocate.buffer);
                   },
               },
               stmt.kind);
  }

  void visit_store(const ir::Store& store) {
    FormArena& forms = collector_.forms();
    const auto saved = forms.mark();
    const StoredBufferId buffer = id_of(*store.buffer);
    collector_.begin_store(buffer);
    for (const ir::Expr& index : store.indices)
      collector_.add_index(forms.rewritten(forms.of(index, bindings_)));
    collector_.add_access(buffer, true);
    OpCounts ops;
    visit_value(store.value, ops);
    collector_.end_store(ops);
    forms.rollback(saved);
  }

  // The value runs as it is written, so operations are counted on the expression tree.
  void visit_value(const ir::Expr& e, OpCounts& ops) {
    ir::visit(
        ir::overloaded{
            [](const ir::IntImm&) {},
            [](const ir::FloatImm&) {},
            [](const ir::VarRef&) {},
            [&](const ir::Unary& unary) {
              count_unary(unary.op, e.dtype(), ops);
              visit_value(unary.a, ops);
            },
            [&](const ir::Binary& binary) {
              count_binary(binary.op, binary.a.dtype(), ops);
              visit_value(binary.a, ops);
              visit_value(binary.b, ops);
            },
            [&](const ir::Select& select) {
              count_select(select, e.dtype(), ops);
              visit_value(select.condition, ops);
              visit_value(select.a, ops);
              visit_value(select.b, ops);
            },
            [&](const ir::Cast& cast) { visit_value(cast.a, ops); },
            [&](const ir::Call& call) {
              ops.add("mathfunc", ir::is_float(e.dtype()));
              for (const ir::Expr& arg : call.args) visit_value(arg, ops);
            },
            [&](const ir::Load& load) {
              for (const ir::Expr& index : load.indices)
                collector_.add_index(collector_.forms().rewritten(collector_.forms().of(index, bindings_)));
              collector_.add_access(id_of(*load.buffer), false);
              for (const ir::Expr& index : load.indices) visit_value(index, ops);
            },
        },
        e);
  }

  StoreCollector collector_;
  std::vector<Binding> bindings_;
};

}  // namespace

FeatureMatrix extract_per_store(const ir::Program& program, const PerStoreOptions& options) {
  return ProgramWalker(options).run(program);
}

}  // namespace tensorsmith::feature

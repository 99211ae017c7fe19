#include "support/program_features.h"

#include <algorithm>

#include "feature/store_collector.h"
#include "feature/value_ops.h"
#include "ir/parts.h"

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
    collector_.begin_store(id_of(*store.buffer));
    add_access(store.buffer, store.indices, true);
    OpCounts ops;
    visit_value(store.value, ops);
    collector_.end_store(ops);
    forms.rollback(saved);
  }

  // The value runs as it is written, so operations are counted on the expression tree.
  void visit_value(const ir::Expr& e, OpCounts& ops) {
    ir::visit(ir::overloaded{
                  [](const ir::IntImm&) {},
                  [](const ir::FloatImm&) {},
                  [](const ir::VarRef&) {},
                  [&](const ir::Unary& unary) { count_unary(unary.op, e.dtype(), ops); },
                  [&](const ir::Binary& binary) { count_binary(binary.op, binary.a.dtype(), ops); },
                  [&](const ir::Select& select) { count_select(select, e.dtype(), ops); },
                  [](const ir::Cast&) {},
                  [&](const ir::Call&) { ops.add("mathfunc", ir::is_float(e.dtype())); },
                  [&](const ir::Load& load) { add_access(load.buffer, load.indices, false); },
              },
              e);
    ir::for_each_part(e, [&](const ir::Expr& part) { visit_value(part, ops); });
  }

  void add_access(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices, bool write) {
    FormArena& forms = collector_.forms();
    for (const ir::Expr& index : indices) collector_.add_index(forms.rewritten(forms.of(index, bindings_)));
    collector_.add_access(id_of(*buffer), write);
  }

  StoreCollector collector_;
  std::vector<Binding> bindings_;
};

}  // namespace

FeatureMatrix extract_per_store(const ir::Program& program, const PerStoreOptions& options) {
  return ProgramWalker(options).run(program);
}

}  // namespace tensorsmith::feature

// Per-store features of a schedule, straight from its loops: no program is built. The loops are those that
// lowering would make without guards; index arithmetic is simplified as it is made.
#include <algorithm>

#include "feature/per_store.h"
#include "feature/store_collector.h"
#include "feature/value_ops.h"

namespace tensorsmith::feature {

namespace {

using sched::Annotation;

size_t at(int i) { return static_cast<size_t>(i); }
bool is_thread(Annotation a) { return a >= Annotation::kVThread; }

enum class Truth : uint8_t { kNo, kYes, kOpen };

class ScheduleWalker {
 public:
  ScheduleWalker(const sched::Schedule& schedule, const sched::Bounds& bounds, const PerStoreOptions& options)
      : schedule_(schedule), bounds_(bounds), collector_(options), forms_(collector_.forms()) {}

  FeatureMatrix run() {
    const size_t n = schedule_.stages.size();
    leaf_values_.resize(n);
    for (size_t s = 0; s < n; ++s) {
      const sched::Stage& stage = schedule_.stages[s];
      if (!stage.is_placeholder() && stage.attach == sched::AttachKind::kRoot) root_stage(s);
    }
    return collector_.finish();
  }

 private:
  void root_stage(size_t s) {
    nest(s);
    allocation(s);
  }

  // Allocated is the region computed at a time.
  void allocation(size_t s) {
    const sched::Stage& stage = schedule_.stages[s];
    int64_t elements = 1;
    for (size_t d = 0; d < stage.op->spatial.size(); ++d) elements *= bounds_.stages[s].root_extent[d];
    for (const ir::Buffer& output : stage.op->outputs) collector_.allocation(number(output.get()), elements);
  }

  // --- loops
  // ------------------------------------------------------------------------------------------------

  void nest(size_t s) {
    const sched::Stage& stage = schedule_.stages[s];
    const size_t leaves = stage.leaves.size();
    // The init stands before the first reduce loop, or where the schedule says.
    size_t init_position = leaves;
    if (stage.op->has_reduction()) {
      for (size_t p = leaves; p-- > 0;) {
        const bool here = stage.init_at >= 0
                              ? stage.leaves[p] == stage.init_at
                              : stage.iterators[at(stage.leaves[p])].kind != sched::IterKind::kSpatial;
        if (here) init_position = p;
      }
    }
    leaf_values_[s].assign(stage.iterators.size(), Form());
    walk(s, 0, init_position, true);
  }

  // Enters the loop of a leaf, unless it runs once; returns its value.
  bool open(size_t s, int leaf, bool outermost, bool bind, Form* value) {
    const sched::Stage& stage = schedule_.stages[s];
    const int64_t extent = bounds_.stages[s].extents[at(leaf)];
    const Annotation annotation = stage.iterators[at(leaf)].annotation;
    if (extent == 1 && !is_thread(annotation)) {
      *value = FormArena::constant(0);
      return false;
    }
    *value = collector_.enter_loop(sched::loop_kind(annotation), sched::thread_axis(annotation), extent,
                                   outermost ? stage.auto_unroll_max_step : 0);
    if (bind) loop_bindings_.emplace_back(bounds_.loop_vars[s][at(leaf)].get(), *value);
    return true;
  }

  void walk(size_t s, size_t position, size_t init_position, bool outermost) {
    const sched::Stage& stage = schedule_.stages[s];
    const bool reduces = stage.op->has_reduction();
    if (reduces && position == init_position) {
      const auto saved = leaf_values_[s];
      init(s, position, outermost);
      leaf_values_[s] = saved;
    }
    if (position == stage.leaves.size()) {
      store(s);
      return;
    }
    const int leaf = stage.leaves[position];
    const bool opened = open(s, leaf, outermost, true, &leaf_values_[s][at(leaf)]);
    for (size_t t = 0; t < s; ++t) {
      const sched::Stage& other = schedule_.stages[t];
      if (other.attach != sched::AttachKind::kAt || other.attach_stage != static_cast<int>(s) ||
          other.attach_iterator != leaf)
        continue;
      nest(t);
      allocation(t);
    }
    walk(s, position + 1, init_position, outermost && !opened);
    if (opened) {
      loop_bindings_.pop_back();
      collector_.leave_loop();
    }
  }

  // Spatial loops from `position` on, of their own, around the stores of the neutral element.
  void init(size_t s, size_t position, bool outermost) {
    const sched::Stage& stage = schedule_.stages[s];
    if (position == stage.leaves.size()) {
      init_store(s);
      return;
    }
    const int leaf = stage.leaves[position];
    bool opened = false;
    if (stage.iterators[at(leaf)].kind == sched::IterKind::kSpatial)
      opened = open(s, leaf, outermost, false, &leaf_values_[s][at(leaf)]);
    init(s, position + 1, outermost && !opened);
    if (opened) collector_.leave_loop();
  }

  // --- values
  // -----------------------------------------------------------------------------------------------

  // Global indices of the root axes [0, count), into roots_.
  void root_values(size_t s, size_t count) {
    const sched::Stage& stage = schedule_.stages[s];
    const std::vector<int64_t>& extents = bounds_.stages[s].extents;
    values_ = leaf_values_[s];
    for (auto it = stage.relations.rbegin(); it != stage.relations.rend(); ++it) {
      if (const auto* split = std::get_if<sched::SplitRelation>(&*it)) {
        Form sum;
        for (int child : split->children) sum = forms_.add(values_[at(child)], sum, extents[at(child)]);
        values_[at(split->parent)] = sum;
      } else {
        const auto& fuse = std::get<sched::FuseRelation>(*it);
        Form rest = values_[at(fuse.child)];
        for (size_t k = fuse.parents.size(); k-- > 0;) {
          const int64_t extent = extents[at(fuse.parents[k])];
          values_[at(fuse.parents[k])] = k == 0 ? rest : forms_.floormod(rest, extent);
          if (k > 0) rest = forms_.floordiv(rest, extent);
        }
      }
    }
    roots_.clear();
    for (size_t r = 0; r < count; ++r) {
      const ir::Expr& min = bounds_.stages[s].root_min[r];
      const Form first = ir::is_int_value(min, 0) ? FormArena::constant(0) : forms_.of(min, loop_bindings_);
      roots_.push_back(forms_.add(first, values_[r]));
    }
  }

  // A buffer of the workload as it is stored.
  int number(const ir::BufferNode* buffer) {
    const int known = collector_.find_buffer(buffer);
    if (known >= 0) return known;
    const sched::Layout* layout = layout_of(buffer);
    if (layout == nullptr) layouts_.push_back(nullptr);
    if (layout == nullptr) return collector_.buffer(buffer, buffer->shape, buffer->strides);
    layouts_.push_back(layout);
    std::vector<int64_t> shape;
    for (const sched::LayoutDim& d : *layout) shape.push_back(d.extent);
    return collector_.buffer(buffer, shape, {});
  }

  const sched::Layout* layout_of(const ir::BufferNode* buffer) const {
    const int producer = schedule_.producer_of(buffer);
    if (producer < 0 || !schedule_.stages[at(producer)].layout) return nullptr;
    return &*schedule_.stages[at(producer)].layout;
  }

  // Adds an access with the logical indices in indices_[first..].
  void add_access(const ir::BufferNode* buffer, size_t first, bool write) {
    const int id = number(buffer);
    if (const sched::Layout* layout = layouts_[at(id)]) {
      for (const sched::LayoutDim& d : *layout) {
        Form digit = forms_.floordiv(indices_[first + at(d.dim)], d.divisor);
        if (buffer->shape[at(d.dim)] > d.divisor * d.extent) digit = forms_.floormod(digit, d.extent);
        collector_.add_index(digit);
      }
    } else {
      for (size_t i = first; i < indices_.size(); ++i) collector_.add_index(indices_[i]);
    }
    collector_.add_access(id, write);
    indices_.resize(first);
  }

  void write_access(const ir::BufferNode* buffer) {
    indices_.assign(roots_.begin(), roots_.begin() + static_cast<std::ptrdiff_t>(buffer->shape.size()));
    add_access(buffer, 0, true);
  }

  void init_store(size_t s) {
    const ir::Operation& op = *schedule_.stages[s].op;
    const auto saved = forms_.mark();
    root_values(s, op.spatial.size());
    for (const ir::Buffer& output : op.outputs) {
      collector_.begin_store(number(output.get()));
      write_access(output.get());
      collector_.end_store({});
    }
    forms_.rollback(saved);
  }

  void store(size_t s) {
    const ir::Operation& op = *schedule_.stages[s].op;
    const auto saved = forms_.mark();
    root_values(s, op.spatial.size() + op.reduce.size());
    axis_bindings_.clear();
    for (size_t r = 0; r < roots_.size(); ++r) {
      const ir::Axis& axis = r < op.spatial.size() ? op.spatial[r] : op.reduce[r - op.spatial.size()];
      axis_bindings_.emplace_back(axis.var.get(), roots_[r]);
    }
    for (size_t b = 0; b < op.bodies.size(); ++b) {
      const ir::BufferNode* output = op.outputs[b].get();
      collector_.begin_store(number(output));
      write_access(output);
      OpCounts ops;
      if (op.has_reduction()) update(op, output, ops);
      visit_value(op.bodies[b], ops);
      collector_.end_store(ops);
    }
    forms_.rollback(saved);
  }

  // output = combine(output, value): the read of the output and the combiner's operation.
  void update(const ir::Operation& op, const ir::BufferNode* output, OpCounts& ops) {
    const bool is_float = ir::is_float(output->dtype);
    switch (op.combiner) {
      case ir::Combiner::kNone:
        return;
      case ir::Combiner::kSum:
        ops.add(kAddSub, is_float);
        break;
      case ir::Combiner::kProd:
        ops.add(kMul, is_float);
        break;
      case ir::Combiner::kMax:
      case ir::Combiner::kMin:
        ops.add(kCompare, is_float);
        break;
      case ir::Combiner::kArgMax:
      case ir::Combiner::kArgMin:
        ops.add(kCompare, is_float);
        ++ops.counts[kSelectOp];
        break;
    }
    for (size_t d = 0; d < output->shape.size(); ++d) count_form(roots_[d], ops);
    indices_.assign(roots_.begin(), roots_.begin() + static_cast<std::ptrdiff_t>(output->shape.size()));
    add_access(output, 0, false);
  }

  // Operations of the form when it is written out as an expression.
  void count_form(const Form& form, OpCounts& ops) {
    int parts = form.constant != 0 || form.count == 0 ? 1 : 0;
    bool first = true;
    for (uint32_t i = 0; i < form.count; ++i) {
      const FormArena::Term term = forms_.terms(form)[i];
      ++parts;
      if (term.coefficient != 1 && !(term.coefficient == -1 && !first)) ops.add(kMul, false);
      first = false;
      count_atom(term, ops);
    }
    ops.add(kAddSub, false, parts - 1);
  }

  void count_atom(const FormArena::Term& term, OpCounts& ops) {
    const FormArena::Atom atom = forms_.atom(term);
    switch (atom.kind) {
      case FormArena::Kind::kLoop:
        return;
      case FormArena::Kind::kFloorDiv:
      case FormArena::Kind::kFloorMod:
        ops.add(kDivMod, false);
        return count_form(atom.a, ops);
      case FormArena::Kind::kMin:
      case FormArena::Kind::kMax:
        ops.add(kCompare, false);
        count_form(atom.a, ops);
        return count_form(atom.b, ops);
      case FormArena::Kind::kEither:
      case FormArena::Kind::kOpaque:
        return visit_tree(*atom.expr, ops);
    }
  }

  // --- expressions of the body
  // --------------------------------------------------------------------------------

  // Adds the reads and, to ops, the operations that remain after simplification.
  void visit_value(const ir::Expr& e, OpCounts& ops) {
    if (e.dtype() == ir::DType::kI64) return count_form(forms_.of(e, axis_bindings_), ops);
    if (e.dtype() == ir::DType::kBool) {
      condition(e, ops);
      return;
    }
    visit_tree(e, ops);
  }

  void visit_tree(const ir::Expr& e, OpCounts& ops) {
    ir::visit(ir::overloaded{
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
                    OpCounts of_condition;
                    const Truth truth = condition(select.condition, of_condition);
                    if (truth != Truth::kNo) visit_value(select.a, ops);
                    if (truth != Truth::kYes) visit_value(select.b, ops);
                    if (truth != Truth::kOpen) return;
                    ops.add(of_condition);
                    count_select(select, e.dtype(), ops);
                  },
                  [&](const ir::Cast& cast) { visit_value(cast.a, ops); },
                  [&](const ir::Call& call) {
                    ops.add(kMathFunction, ir::is_float(e.dtype()));
                    for (const ir::Expr& arg : call.args) visit_value(arg, ops);
                  },
                  [&](const ir::Load& load) {
                    const size_t first = indices_.size();
                    for (const ir::Expr& index : load.indices) {
                      const Form form = forms_.of(index, axis_bindings_);
                      indices_.push_back(form);
                    }
                    // Reads inside of the indices come after this one; its own go to the collector first.
                    nested_.assign(indices_.begin() + static_cast<std::ptrdiff_t>(first), indices_.end());
                    const std::vector<Form> own = nested_;
                    add_access(load.buffer.get(), first, false);
                    for (const Form& form : own) count_form(form, ops);
                  },
              },
              e);
  }

  Truth condition(const ir::Expr& e, OpCounts& ops) {
    if (const auto* imm = ir::as<ir::IntImm>(e)) return imm->value != 0 ? Truth::kYes : Truth::kNo;
    if (const auto* unary = ir::as<ir::Unary>(e); unary != nullptr && unary->op == ir::UnaryOp::kNot) {
      const Truth inner = condition(unary->a, ops);
      if (inner == Truth::kOpen) ++ops.counts[kBoolOp];
      return inner == Truth::kOpen ? inner : inner == Truth::kYes ? Truth::kNo : Truth::kYes;
    }
    const auto* binary = ir::as<ir::Binary>(e);
    if (binary != nullptr && (binary->op == ir::BinaryOp::kAnd || binary->op == ir::BinaryOp::kOr)) {
      const Truth decides = binary->op == ir::BinaryOp::kAnd ? Truth::kNo : Truth::kYes;
      OpCounts left, right;
      const Truth a = condition(binary->a, left), b = condition(binary->b, right);
      if (a == decides || b == decides) return decides;
      if (a == Truth::kOpen) ops.add(left);
      if (b == Truth::kOpen) ops.add(right);
      if (a != Truth::kOpen || b != Truth::kOpen) return a == Truth::kOpen ? a : b;
      ++ops.counts[kBoolOp];
      return Truth::kOpen;
    }
    if (binary != nullptr && ir::is_comparison(binary->op) && binary->a.dtype() == ir::DType::kI64) {
      const Form difference =
          forms_.add(forms_.of(binary->a, axis_bindings_), forms_.of(binary->b, axis_bindings_), -1);
      const Truth truth = compare(binary->op, forms_.range(difference));
      if (truth == Truth::kOpen) count_comparison(difference, ops);
      return truth;
    }
    visit_tree(e, ops);
    return Truth::kOpen;
  }

  // difference op 0
  static Truth compare(ir::BinaryOp op, const ValueRange& d) {
    const auto decide = [](bool always, bool never) {
      return always ? Truth::kYes : never ? Truth::kNo : Truth::kOpen;
    };
    switch (op) {
      case ir::BinaryOp::kLt:
        return decide(d.max < 0, d.min >= 0);
      case ir::BinaryOp::kLe:
        return decide(d.max <= 0, d.min > 0);
      case ir::BinaryOp::kGt:
        return decide(d.min > 0, d.max <= 0);
      case ir::BinaryOp::kGe:
        return decide(d.min >= 0, d.max < 0);
      case ir::BinaryOp::kEq:
        return decide(d.min == 0 && d.max == 0, d.min > 0 || d.max < 0);
      case ir::BinaryOp::kNe:
        return decide(d.min > 0 || d.max < 0, d.min == 0 && d.max == 0);
      default:
        return Truth::kOpen;
    }
  }

  // A comparison written with the terms spread over both sides so that no coefficient is negative.
  void count_comparison(const Form& difference, OpCounts& ops) {
    ops.add(kCompare, false);
    int left = 0, right = 0;
    for (uint32_t i = 0; i < difference.count; ++i) {
      const FormArena::Term term = forms_.terms(difference)[i];
      ++(term.coefficient > 0 ? left : right);
      if (term.coefficient != 1 && term.coefficient != -1) ops.add(kMul, false);
      count_atom(term, ops);
    }
    if (difference.constant != 0) ++(left == 0 ? left : right);
    ops.add(kAddSub, false, std::max(left - 1, 0) + std::max(right - 1, 0));
  }

  const sched::Schedule& schedule_;
  const sched::Bounds& bounds_;
  StoreCollector collector_;
  FormArena& forms_;
  std::vector<std::vector<Form>> leaf_values_;  // by stage and iterator; leaves only
  std::vector<Binding> loop_bindings_, axis_bindings_;
  std::vector<const sched::Layout*> layouts_;  // by the collector's buffer number; null: as declared
  std::vector<Form> values_, roots_, indices_, nested_;
};

}  // namespace

Result<FeatureMatrix> extract_per_store(const sched::Schedule& schedule, const PerStoreOptions& options) {
  TS_ASSIGN_OR_RETURN(const sched::Bounds bounds, sched::infer_bounds(schedule));
  return ScheduleWalker(schedule, bounds, options).run();
}

}  // namespace tensorsmith::feature

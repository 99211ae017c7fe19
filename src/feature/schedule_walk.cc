// Per-store features of a schedule, straight from its loops: no program is built. The loops are those that
// lowering would make without guards; index arithmetic is simplified as it is made.
#include <algorithm>
#include <optional>

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
    walk_roots();
    return collector_.finish();
  }
  LeafFeatures run_leaves() {
    collector_.keep_leaves();
    walk_roots();
    return collector_.finish_leaves();
  }

 private:
  void walk_roots() {
    const size_t n = schedule_.stages.size();
    leaf_values_.resize(n);
    for (size_t s = 0; s < n; ++s) {
      const sched::Stage& stage = schedule_.stages[s];
      if (stage.is_placeholder() || stage.attach != sched::AttachKind::kRoot) continue;
      if (!schedule_.is_output(s)) collector_.open_node();  // to the end
      nest(s);
      allocation(s);
    }
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
    // The pragma stands at the first loop, even if that runs once; TVM drops it where the loop is bound to
    // threads.
    const bool pragma = leaves > 0 && stage.auto_unroll_max_step != 0 &&
                        !is_thread(stage.iterators[at(stage.leaves[0])].annotation);
    const int64_t outside = collector_.unroll_step();
    if (pragma) collector_.set_unroll_step(stage.auto_unroll_max_step);
    if (reduces_across_threads(stage)) {
      cross_thread(s, 0);
    } else {
      walk(s, 0, init_position);
    }
    collector_.set_unroll_step(outside);
  }

  // --- reductions across threads: each thread reduces its part into a temporary of its own, these are
  // combined into another, and that is stored. TVM's MakeCrossThreadReduction.

  static bool is_reduce(const sched::Stage& stage, int leaf) {
    return stage.iterators[at(leaf)].kind != sched::IterKind::kSpatial;
  }
  static bool reduces_across_threads(const sched::Stage& stage) {
    return std::any_of(stage.leaves.begin(), stage.leaves.end(), [&](int leaf) {
      return is_reduce(stage, leaf) && is_thread(stage.iterators[at(leaf)].annotation);
    });
  }

  // The loops that all threads share: spatial ones and those bound to threads; reduce loops of one thread are
  // inside.
  void cross_thread(size_t s, size_t position) {
    const sched::Stage& stage = schedule_.stages[s];
    if (position == stage.leaves.size()) {
      combine_threads(s);
      return;
    }
    const int leaf = stage.leaves[position];
    if (is_reduce(stage, leaf) && !is_thread(stage.iterators[at(leaf)].annotation)) {
      cross_thread(s, position + 1);
      return;
    }
    const bool opened = open(s, leaf, true, &leaf_values_[s][at(leaf)]);
    const int allocated = attached(s, leaf);
    cross_thread(s, position + 1);
    for (int i = 0; i < allocated; ++i) collector_.close_node();
    if (opened) {
      loop_bindings_.pop_back();
      collector_.leave_loop();
    }
  }

  void combine_threads(size_t s) {
    const sched::Stage& stage = schedule_.stages[s];
    const bool parts = std::any_of(stage.leaves.begin(), stage.leaves.end(), [&](int leaf) {
      return is_reduce(stage, leaf) && !is_thread(stage.iterators[at(leaf)].annotation);
    });
    const auto temporary = [&](const ir::Buffer& output) {
      temporaries_.push_back(ir::make_buffer("temporary", output->dtype, {1}, ir::MemoryScope::kLocal));
      return temporaries_.back().get();
    };
    std::vector<const ir::BufferNode*> part, whole;
    for (const ir::Buffer& output : stage.op->outputs) {
      if (parts) part.push_back(temporary(output));
      whole.push_back(temporary(output));
    }
    for (size_t i = 0; i < part.size() + whole.size(); ++i) collector_.open_node();
    for (const ir::BufferNode* buffer : part) {
      collector_.begin_store(number(buffer));
      access_first(buffer, true);
      collector_.end_store({});
    }
    if (parts) reduce_part(s, 0, part);
    for (const ir::BufferNode* buffer : whole) collector_.combined_across_threads(number(buffer));
    const auto saved = forms_.mark();
    root_values(s, stage.op->spatial.size());
    for (size_t b = 0; b < whole.size(); ++b) {
      const ir::BufferNode* output = stage.op->outputs[b].get();
      collector_.begin_store(number(output));
      write_access(output);
      access_first(whole[b], false);
      collector_.end_store({});
    }
    forms_.rollback(saved);
    for (const auto& buffers : {part, whole}) {
      for (const ir::BufferNode* buffer : buffers) {
        collector_.allocation(number(buffer), 1);
        collector_.close_node();
      }
    }
  }

  void reduce_part(size_t s, size_t position, const std::vector<const ir::BufferNode*>& part) {
    const sched::Stage& stage = schedule_.stages[s];
    if (position == stage.leaves.size()) {
      store(s, &part);
      return;
    }
    const int leaf = stage.leaves[position];
    if (!is_reduce(stage, leaf) || is_thread(stage.iterators[at(leaf)].annotation)) {
      reduce_part(s, position + 1, part);
      return;
    }
    const bool opened = open(s, leaf, true, &leaf_values_[s][at(leaf)]);
    const int allocated = attached(s, leaf);
    reduce_part(s, position + 1, part);
    for (int i = 0; i < allocated; ++i) collector_.close_node();
    if (opened) {
      loop_bindings_.pop_back();
      collector_.leave_loop();
    }
  }

  void access_first(const ir::BufferNode* buffer, bool write) {
    indices_.assign(1, FormArena::constant(0));
    add_access(buffer, 0, write);
  }

  // --- loops of other stages

  // Enters the loop of a leaf, unless it runs once; returns its value.
  bool open(size_t s, int leaf, bool bind, Form* value) {
    const sched::Stage& stage = schedule_.stages[s];
    const int64_t extent = bounds_.stages[s].extents[at(leaf)];
    const Annotation annotation = stage.iterators[at(leaf)].annotation;
    if (extent == 1 && !is_thread(annotation)) {
      *value = FormArena::constant(0);
      return false;
    }
    *value = collector_.enter_loop(sched::loop_kind(annotation), sched::thread_axis(annotation), extent, 0);
    if (extent == 1) *value = FormArena::constant(0);
    if (bind) loop_bindings_.emplace_back(bounds_.loop_vars[s][at(leaf)].get(), *value);
    return true;
  }

  // The stages attached to the loop; returns how many nodes of allocations were opened.
  int attached(size_t s, int leaf) {
    int allocated = 0;
    for (size_t t = 0; t < s; ++t) {
      const sched::Stage& other = schedule_.stages[t];
      if (other.attach != sched::AttachKind::kAt || other.attach_stage != static_cast<int>(s) ||
          other.attach_iterator != leaf)
        continue;
      collector_.open_node();
      ++allocated;
      nest(t);
      allocation(t);
    }
    return allocated;
  }

  void walk(size_t s, size_t position, size_t init_position) {
    const sched::Stage& stage = schedule_.stages[s];
    const bool reduces = stage.op->has_reduction();
    if (reduces && position == init_position) {
      const auto saved = leaf_values_[s];
      init(s, position);
      leaf_values_[s] = saved;
    }
    if (position == stage.leaves.size()) {
      store(s);
      return;
    }
    const int leaf = stage.leaves[position];
    const bool opened = open(s, leaf, true, &leaf_values_[s][at(leaf)]);
    const int allocated = attached(s, leaf);
    walk(s, position + 1, init_position);
    for (int i = 0; i < allocated; ++i) collector_.close_node();
    if (opened) {
      loop_bindings_.pop_back();
      collector_.leave_loop();
    }
  }

  // Spatial loops from `position` on, of their own, around the stores of the neutral element.
  void init(size_t s, size_t position) {
    const sched::Stage& stage = schedule_.stages[s];
    if (position == stage.leaves.size()) {
      init_store(s);
      return;
    }
    const int leaf = stage.leaves[position];
    bool opened = false;
    if (stage.iterators[at(leaf)].kind == sched::IterKind::kSpatial)
      opened = open(s, leaf, false, &leaf_values_[s][at(leaf)]);
    init(s, position + 1);
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

  // root_values with what the guards around the statement say: loops may run beyond the region or the tensor.
  // drop_assumptions() before the statement ends.
  void guarded_root_values(size_t s, size_t count) {
    root_values(s, count);
    const ir::Operation& op = *schedule_.stages[s].op;
    const sched::StageBounds& bounds = bounds_.stages[s];
    bool guarded = false;
    for (size_t r = 0; r < count; ++r) {
      const int64_t extent =
          r < op.spatial.size() ? op.spatial[r].extent : op.reduce[r - op.spatial.size()].extent;
      if (forms_.range(values_[r]).max >= bounds.root_extent[r]) {
        forms_.assume_below(values_[r], bounds.root_extent[r]);
        guarded = true;
      }
      if (bounds.root_may_leave[r] != 0 && forms_.range(roots_[r]).max >= extent) {
        forms_.assume_below(roots_[r], extent);
        guarded = true;
      }
    }
    if (guarded) root_values(s, count);
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
    indices_.clear();
    for (size_t d = 0; d < buffer->shape.size(); ++d) indices_.push_back(forms_.rewritten(roots_[d]));
    add_access(buffer, 0, true);
  }

  void init_store(size_t s) {
    const ir::Operation& op = *schedule_.stages[s].op;
    const auto saved = forms_.mark();
    for (const ir::Buffer& output : op.outputs) {
      guarded_root_values(s, op.spatial.size());
      collector_.begin_store(number(output.get()));
      write_access(output.get());
      forms_.drop_assumptions();
      collector_.end_store({});
    }
    forms_.rollback(saved);
  }

  // temporaries: scalars that take the reduction's value instead of the outputs.
  void store(size_t s, const std::vector<const ir::BufferNode*>* temporaries = nullptr) {
    const ir::Operation& op = *schedule_.stages[s].op;
    const auto saved = forms_.mark();
    for (size_t b = 0; b < op.bodies.size(); ++b) {
      guarded_root_values(s, op.spatial.size() + op.reduce.size());
      axis_bindings_.clear();
      for (size_t r = 0; r < roots_.size(); ++r) {
        const ir::Axis& axis = r < op.spatial.size() ? op.spatial[r] : op.reduce[r - op.spatial.size()];
        axis_bindings_.emplace_back(axis.var.get(), roots_[r]);
      }
      OpCounts ops;
      if (temporaries != nullptr) {
        collector_.begin_store(number((*temporaries)[b]));
        access_first((*temporaries)[b], true);
        count_combiner(op, ir::is_float(op.outputs[b]->dtype), ops);
        access_first((*temporaries)[b], false);
      } else {
        const ir::BufferNode* output = op.outputs[b].get();
        collector_.begin_store(number(output));
        write_access(output);
        if (op.has_reduction()) update(op, output, ops);
      }
      visit_value(op.bodies[b], ops);
      forms_.drop_assumptions();
      collector_.end_store(ops);
    }
    forms_.rollback(saved);
  }

  static void count_combiner(const ir::Operation& op, bool is_float, OpCounts& ops) {
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
  }

  // output = combine(output, value): the read of the output and the combiner's operation.
  void update(const ir::Operation& op, const ir::BufferNode* output, OpCounts& ops) {
    count_combiner(op, ir::is_float(output->dtype), ops);
    indices_.clear();
    for (size_t d = 0; d < output->shape.size(); ++d) {
      indices_.push_back(forms_.rewritten(roots_[d]));
      count_form(indices_.back(), ops);
    }
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
                    if (const auto divisor = constant_divisor(binary)) {
                      if (*divisor != 1) ops.add(kMul, true);
                      visit_value(binary.a, ops);
                      return;
                    }
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
                      const Form form = forms_.rewritten(forms_.of(index, axis_bindings_));
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

  // x / c of floats is a product to TVM, and nothing for c = 1; c may be an integer that turns out to be
  // constant.
  std::optional<double> constant_divisor(const ir::Binary& binary) {
    if (binary.op != ir::BinaryOp::kDiv || !ir::is_float(binary.a.dtype())) return std::nullopt;
    if (const auto* imm = ir::as<ir::FloatImm>(binary.b)) return imm->value;
    const auto* cast = ir::as<ir::Cast>(binary.b);
    if (cast == nullptr || cast->a.dtype() != ir::DType::kI64) return std::nullopt;
    const auto value = constant_value(cast->a);
    return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
  }
  std::optional<int64_t> constant_value(const ir::Expr& e) {
    const auto* binary = ir::as<ir::Binary>(e);
    if (binary != nullptr && binary->op == ir::BinaryOp::kMul) {  // of two sums that are constant
      const auto a = constant_value(binary->a), b = constant_value(binary->b);
      return a && b ? std::optional<int64_t>(*a * *b) : std::nullopt;
    }
    const Form form = forms_.of(e, axis_bindings_);
    return form.is_constant() ? std::optional<int64_t>(form.constant) : std::nullopt;
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
  std::vector<ir::Buffer> temporaries_;        // of reductions across threads
  std::vector<Form> values_, roots_, indices_, nested_;
};

}  // namespace

Result<FeatureMatrix> extract_per_store(const sched::Schedule& schedule, const PerStoreOptions& options) {
  TS_ASSIGN_OR_RETURN(const sched::Bounds bounds, sched::infer_bounds(schedule));
  return ScheduleWalker(schedule, bounds, options).run();
}

Result<LeafFeatures> extract_leaves(const sched::Schedule& schedule, const PerStoreOptions& options) {
  TS_ASSIGN_OR_RETURN(const sched::Bounds bounds, sched::infer_bounds(schedule));
  return ScheduleWalker(schedule, bounds, options).run_leaves();
}

FeatureMatrix LeafFeatures::per_store() const {
  FeatureMatrix out;
  out.rows = 0;
  for (int number : row_numbers) out.rows += number >= 0 ? 1 : 0;
  out.values.resize(at(out.rows) * kPerStoreWidth);
  for (size_t l = 0; l < row_numbers.size(); ++l) {
    if (row_numbers[l] < 0) continue;
    const auto vector = vectors.row(static_cast<int>(l));
    std::copy(vector.begin(), vector.end(), out.values.begin() + row_numbers[l] * kPerStoreWidth);
  }
  return out;
}

}  // namespace tensorsmith::feature
